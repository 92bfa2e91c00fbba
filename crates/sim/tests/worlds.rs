//! Some hundred worlds with all faults, the same each time. Thousands more: `scripts/hunt`.

use evenbeat_sim::faults;
use evenbeat_sim::hunt::{SweepOptions, sweep};
use evenbeat_sim::world::Options;

const N_WORLDS: u64 = 300;

#[test]
fn in_three_hundred_worlds_nothing_goes_wrong() {
    println!("seeds 0..{N_WORLDS}");
    let how = SweepOptions {
        options: Options::default(),
        n_threads: std::thread::available_parallelism().map_or(1, usize::from),
        is_twice: true,
        stops_at_first: false,
    };
    let swept = sweep(0..N_WORLDS, how, &|_| {});
    for (seed, verdict) in &swept.bad {
        for violation in verdict.violations.iter().take(3) {
            println!("seed {seed}: {violation}");
        }
        println!("replay: cargo run --release -p evenbeat-sim -- --seed {seed} --trace");
    }
    assert!(
        swept.is_clean(),
        "{} worlds with violations, not the same twice: {:?}",
        swept.bad.len(),
        swept.unlike
    );
    for class in faults::ALL {
        let n = swept.n_hit.get(class).copied().unwrap_or(0);
        println!("{class}: in {n} of {N_WORLDS} worlds");
        assert!(N_WORLDS * 30 <= n * 100, "{class} strikes in only {n} of {N_WORLDS} worlds");
    }
    // Worlds in which nothing happens prove nothing.
    assert!(
        100_000 < swept.n_granted && 500 < swept.n_fenced && 1_000 < swept.n_lost && 2_000 < swept.n_halts
    );
    assert!(
        N_WORLDS * 30 <= swept.n_with_workers * 100
            && 20_000 < swept.n_taken_up
            && 300 < swept.n_workers_fenced,
        "{} worlds with workers, {} runs taken up, {} of their sessions fenced off",
        swept.n_with_workers,
        swept.n_taken_up,
        swept.n_workers_fenced
    );
}
