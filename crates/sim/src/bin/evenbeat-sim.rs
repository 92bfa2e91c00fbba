//! Lives through simulated worlds and tells what went wrong in them.

use std::process::ExitCode;
use std::time::Instant;

use evenbeat_sim::faults;
use evenbeat_sim::hunt::{Detection, Mutant, Sweep, SweepOptions, judge_world, sweep};
use evenbeat_sim::setup::Setup;
use evenbeat_sim::world::Options;

const USAGE: &str = "\
Lives through simulated worlds: real engines, a store, faults of every class, and those who watch.

Usage:
  evenbeat-sim --seed N [--trace] [--setup] [--without MUTANT]   one world, told in full
  evenbeat-sim --seeds A..B [--once] [--without MUTANT]          many worlds, on all cores
  evenbeat-sim --mutants [--most N]                              each rule taken out: who notices?

  --trace    every line of what happens
  --setup    what the world is made of
  --once     live through each world once, not twice
  --most N   so many seeds for each mutant at most (400)
";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(trouble) => {
            eprintln!("evenbeat-sim: {trouble}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The command line.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the flags of a command line")]
struct Args {
    seed: Option<u64>,
    seeds: Option<(u64, u64)>,
    mutants: bool,
    trace: bool,
    setup: bool,
    once: bool,
    most: Option<u64>,
    without: Option<Mutant>,
}

fn run(args: &[String]) -> Result<bool, String> {
    if args.is_empty() || args.iter().any(|arg| arg == "--help" || arg == "-h") {
        print!("{USAGE}");
        return Ok(true);
    }
    let args = read(args)?;
    match (args.seed, args.seeds, args.mutants) {
        (Some(seed), None, false) => Ok(one(seed, &args)),
        (None, Some((first, end)), false) => Ok(many(first, end, &args)),
        (None, None, true) => Ok(mutants(args.most.unwrap_or(400))),
        _ => Err("say one of --seed, --seeds and --mutants".to_owned()),
    }
}

fn read(texts: &[String]) -> Result<Args, String> {
    let mut args = Args::default();
    let mut texts = texts.iter();
    while let Some(arg) = texts.next() {
        let mut value = || texts.next().ok_or(format!("`{arg}` needs a value"));
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"));
        match arg.as_str() {
            "--seed" => args.seed = Some(number(value()?)?),
            "--seeds" => {
                let text = value()?;
                let (first, end) = text.split_once("..").ok_or(format!("`{text}` is not like 0..1000"))?;
                args.seeds = Some((number(first)?, number(end)?));
            }
            "--mutants" => args.mutants = true,
            "--trace" => args.trace = true,
            "--setup" => args.setup = true,
            "--once" => args.once = true,
            "--most" => args.most = Some(number(value()?)?),
            "--without" => {
                let text = value()?;
                let found = Mutant::all().into_iter().find(|it| it.to_string().ends_with(text.as_str()));
                args.without = Some(found.ok_or(format!("no mutant is called `{text}`"))?);
            }
            other => return Err(format!("`{other}` is not an option")),
        }
    }
    Ok(args)
}

fn options(args: &Args) -> Options {
    args.without.map_or_else(Options::default, Mutant::options)
}

fn one(seed: u64, args: &Args) -> bool {
    println!("seed {seed}");
    let setup = Setup::from_seed(seed);
    if args.setup {
        println!("{setup:#?}");
    }
    let mut line = |text: &str| {
        if args.trace {
            println!("{text}");
        }
    };
    let verdict = judge_world(setup.clone(), options(args), &mut line, args.trace);
    let again = judge_world(setup, options(args), &mut |_| {}, false);
    println!("{:#?}", verdict.report);
    for violation in &verdict.violations {
        println!("{violation}");
    }
    let is_same = verdict.report.hash == again.report.hash;
    if !is_same {
        println!("the same seed gave another world: {:x} and {:x}", verdict.report.hash, again.report.hash);
    }
    println!("{}", replay(seed, args));
    verdict.is_clean() && is_same
}

fn replay(seed: u64, args: &Args) -> String {
    let without = args.without.map_or_else(String::new, |it| {
        format!(" --without {}", it.to_string().rsplit(' ').next().unwrap_or_default())
    });
    let features = if args.without.is_some() { " --features mutants" } else { "" };
    format!("replay: cargo run --release -p evenbeat-sim{features} -- --seed {seed}{without} --trace")
}

fn many(first: u64, end: u64, args: &Args) -> bool {
    println!("seeds {first}..{end}");
    let began = Instant::now();
    let how = SweepOptions {
        options: options(args),
        n_threads: std::thread::available_parallelism().map_or(1, usize::from),
        is_twice: !args.once,
        stops_at_first: false,
    };
    let swept = sweep(first..end, how, &|so_far| {
        if so_far.n_worlds % 500 == 0 {
            let seconds = began.elapsed().as_secs_f64();
            eprintln!("{} worlds, {seconds:.0} s, {} with violations", so_far.n_worlds, so_far.bad.len());
        }
    });
    tell(&swept, began.elapsed().as_secs_f64());
    for (seed, verdict) in swept.bad.iter().take(20) {
        println!("\nseed {seed}: {} violation(s)", verdict.violations.len());
        for violation in verdict.violations.iter().take(5) {
            println!("  {violation}");
        }
        println!("  {}", replay(*seed, args));
    }
    for seed in &swept.unlike {
        println!("seed {seed} did not give the same world twice\n  {}", replay(*seed, args));
    }
    swept.is_clean()
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn tell(swept: &Sweep, seconds: f64) {
    println!(
        "{} worlds in {seconds:.0} s ({:.0} a minute): {} with violations, {} not the same twice",
        swept.n_worlds,
        swept.n_worlds as f64 / seconds.max(0.001) * 60.0,
        swept.bad.len(),
        swept.unlike.len()
    );
    println!(
        "{} runs granted, {} sessions fenced off, {} runs released, {} halts",
        swept.n_granted, swept.n_fenced, swept.n_lost, swept.n_halts
    );
    println!(
        "{} worlds had workers: {} runs taken up, {} of their sessions fenced off",
        swept.n_with_workers, swept.n_taken_up, swept.n_workers_fenced
    );
    for class in faults::ALL.into_iter().chain(faults::OF_WORKERS) {
        let n = swept.n_hit.get(class).copied().unwrap_or(0);
        println!("  {class:<19} in {:>3.0}% of worlds", n as f64 * 100.0 / swept.n_worlds.max(1) as f64);
    }
    if !swept.bad.is_empty() {
        let mut by_property = std::collections::BTreeMap::new();
        for verdict in swept.bad.values() {
            for property in verdict.properties() {
                *by_property.entry(property).or_insert(0) += 1;
            }
        }
        println!("worlds by property that did not hold: {by_property:?}");
    }
}

fn mutants(most: u64) -> bool {
    println!("each rule taken out, up to {most} seeds each");
    let mut n_missed = 0;
    for mutant in Mutant::all() {
        if let Detection::ByTest(test) = mutant.noticed {
            println!("test    {:<46} {test}", mutant.to_string());
            continue;
        }
        let how = SweepOptions {
            options: mutant.options(),
            n_threads: std::thread::available_parallelism().map_or(1, usize::from),
            is_twice: false,
            stops_at_first: true,
        };
        let swept = sweep(0..most, how, &|_| {});
        match swept.bad.first_key_value() {
            Some((seed, verdict)) => {
                let properties: Vec<&str> = verdict.properties().into_iter().collect();
                println!("caught  {:<46} seed {seed:>4}  {}", mutant.to_string(), properties.join(", "));
            }
            None => {
                n_missed += 1;
                println!("MISSED  {mutant}");
            }
        }
    }
    n_missed == 0
}
