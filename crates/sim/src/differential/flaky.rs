//! The n-th call is not done, or is done and its answer lost: whatever is requested then, the totals must add up.

use super::request::Asker;
use super::{Request, Story, TestStore, check_totals};
use crate::reference::ReferenceStore;

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// It never reaches the store, and is not repeated.
    NotDone,
    /// It is done, its answer is lost, and it is repeated.
    AnswerLost,
}

/// Lives through the story of a seed once for each of its calls and each way to fail, every time with an empty
/// store. Stops at the first life in which something does not add up, in words; else tells how many there were.
pub fn fail_each_call<S: TestStore>(
    seed: u64,
    n_requests: usize,
    mut empty: impl FnMut() -> S,
) -> Result<usize, String> {
    let mut n_lives = 0;
    for failing in [CallFault::NotDone, CallFault::AnswerLost] {
        for nth in 0..n_requests {
            live_with(&mut empty(), seed, n_requests, nth, failing)
                .map_err(|why| format!("seed {seed}, call {nth} {failing:?}: {why}"))?;
            n_lives += 1;
        }
    }
    Ok(n_lives)
}

fn live_with<S: TestStore>(
    store: &mut S,
    seed: u64,
    n_requests: usize,
    nth: usize,
    failing: CallFault,
) -> Result<(), String> {
    let mut story = Story::new(seed);
    // The reference lives through the same without any failure, and tells what is sensible to ask.
    let mut reference = ReferenceStore::new(story.now());
    store.set_now(story.now());
    let (mut here, mut there) = (Asker::default(), Asker::default());
    for step in 0..n_requests {
        let request = story.next(&reference);
        here.ask(&mut reference, &request);
        let n_times = match failing {
            _ if step != nth || matches!(request, Request::FailOver | Request::Clock(_)) => 1,
            CallFault::NotDone => 0,
            CallFault::AnswerLost => 2,
        };
        for _ in 0..n_times {
            there.ask(store, &request);
        }
        if step == nth || nth < step && step + 1 == n_requests {
            check_totals(store.views())?;
        }
        story.hear(&reference);
    }
    Ok(())
}
