//! Every parser against texts that nobody would write.
//!
//! No input may cause a panic or take longer than [`LONGEST`]; what is accepted must survive being
//! printed and read again. The test command gives each parser a few seconds, `scripts/fuzz` as long
//! as you like; the seed is printed first and the replay last. Inputs that once failed live on in
//! `corpus/`, which every run begins with.

mod mutate;
mod targets;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use mutate::Mutator;
use targets::Target;

/// No text of bounded size may keep a parser busy for longer than this.
const LONGEST: Duration = Duration::from_millis(50);

/// How many inputs are kept to grow new ones from.
const POOL_MAX: usize = 4_096;

#[test]
fn durations() {
    fuzz(&targets::DURATION);
}

#[test]
fn instants() {
    fuzz(&targets::INSTANT);
}

#[test]
fn cron_expressions() {
    fuzz(&targets::CRON);
}

#[test]
fn blackouts() {
    fuzz(&targets::BLACKOUT);
}

#[test]
fn job_files() {
    fuzz(&targets::JOB_FILE);
}

#[test]
fn crontabs() {
    fuzz(&targets::CRONTAB);
}

#[test]
fn state_files() {
    fuzz(&targets::STATE_FILE);
}

fn fuzz(target: &Target) {
    let seed = setting("EVENBEAT_FUZZ_SEED").unwrap_or(20_261_115);
    let time = Duration::from_secs(setting("EVENBEAT_FUZZ_SECONDS").unwrap_or(3));
    println!("{}: seed {seed}, {} s", target.name, time.as_secs());

    let mut pool: Vec<String> = target.seeds.iter().map(|it| (*it).to_owned()).collect();
    pool.extend(corpus(target.name));
    let mut answers_seen = BTreeSet::new();
    for input in &pool {
        answers_seen.insert(shape(&examine(target, input, seed)));
    }

    let mut mutator = Mutator::new(seed, target.words);
    let started = Instant::now();
    let mut n_inputs: u64 = 0;
    while started.elapsed() < time {
        let input = mutator.grow(&pool, target.bytes_max);
        let answer = examine(target, &input, seed);
        // An answer of a kind not seen before means a path not taken before: grow on from there.
        if pool.len() < POOL_MAX && answers_seen.insert(shape(&answer)) {
            pool.push(input);
        }
        n_inputs += 1;
    }
    println!("{}: {n_inputs} inputs, {} of them kept to grow from, 0 findings", target.name, pool.len());
    assert!(100 < n_inputs, "{} inputs are no test of {}", n_inputs, target.name);
}

/// Runs one input and returns the answer, which is the same whether it was accepted or not.
fn examine(target: &Target, input: &str, seed: u64) -> String {
    let run = || catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let started = worked();
    let Ok(answer) = run() else { report(target, input, seed, "panicked") };
    if LONGEST < worked().saturating_sub(started) {
        // The machine may have been busy elsewhere: what is slow is slow every time.
        let best = (0..5).map(|_| {
            let started = worked();
            let _ = run();
            worked().saturating_sub(started)
        });
        let best = best.min().unwrap_or_default();
        if LONGEST < best {
            report(target, input, seed, &format!("took {} ms", best.as_millis()));
        }
    }
    answer
}

/// How long the processor has worked for this thread: what others do on the machine does not count.
fn worked() -> Duration {
    let at = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(at.tv_sec.unsigned_abs(), u32::try_from(at.tv_nsec).unwrap_or_default())
}

fn report(target: &Target, input: &str, seed: u64, trouble: &str) -> ! {
    let (name, shown) = (target.name, input.escape_debug());
    panic!(
        "{name} {trouble} on \"{shown}\"\nkeep the input in crates/evenbeat/tests/it/fuzz/corpus/{name}/\n\
         replay: EVENBEAT_FUZZ_SEED={seed} cargo test -p evenbeat --test it fuzz::"
    );
}

/// An answer without its particulars: what stands in backticks and numbers is the input's.
fn shape(answer: &str) -> String {
    let mut shape = String::new();
    let mut quoted = false;
    for letter in answer.chars().take(4_000) {
        if letter == '`' {
            quoted = !quoted;
        }
        if !quoted && !letter.is_ascii_digit() {
            shape.push(letter);
        }
    }
    shape
}

fn corpus(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fuzz/corpus").join(name);
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()).collect()
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}
