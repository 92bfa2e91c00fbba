//! Every safety rule, taken out, is noticed. Run with the feature `mutants`, which the product never has.

#![cfg(feature = "mutants")]

use evenbeat_sim::hunt::{Detection, Mutant, SweepOptions, sweep};

/// How many worlds may pass before a checker notices.
const WORLDS_MAX: u64 = 150;

#[test]
fn every_rule_that_is_taken_out_is_noticed() {
    let mut unnoticed = Vec::new();
    let mut n_in_worlds = 0;
    for mutant in Mutant::all() {
        let from = match mutant.noticed {
            Detection::InWorlds { from } => from,
            Detection::ByTest(test) => {
                println!("{:<46} {test}", mutant.to_string());
                continue;
            }
        };
        n_in_worlds += 1;
        let how =
            SweepOptions { options: mutant.options(), n_threads: 2, is_twice: false, stops_at_first: true };
        // The world that showed it last time, then any other.
        let found = [from..from + 1, 0..WORLDS_MAX]
            .into_iter()
            .find_map(|seeds| sweep(seeds, how, &|_| {}).bad.into_iter().next());
        match found {
            Some((seed, verdict)) => {
                println!("{:<46} seed {seed}: {:?}", mutant.to_string(), verdict.properties());
            }
            None => unnoticed.push(mutant.to_string()),
        }
    }
    assert!(unnoticed.is_empty(), "nobody noticed in {WORLDS_MAX} worlds: {unnoticed:#?}");
    assert!(20 <= n_in_worlds, "only {n_in_worlds} are looked for in worlds");
}
