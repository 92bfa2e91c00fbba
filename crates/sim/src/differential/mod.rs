//! Stores held against the reference: the same requests, drawn from a seed, must get the same answers.
//!
//! [`compare`] lives through a [`Story`] with a store and the reference side by side. [`fail_each_call`] goes
//! through a scripted day again and again, each time with another call failing or its answer lost, and looks
//! whether the [totals](check_totals()) still add up.

mod totals;
mod flaky;
mod request;
mod story;

use std::fmt;

use evenbeat_core::store::{Store, Views};
use evenbeat_core::time::Timestamp;

use crate::reference::ReferenceStore;

pub use flaky::{CallFault, fail_each_call};
pub use request::Request;
pub use story::Story;
pub use totals::check_totals;

/// A store that a test controls.
pub trait TestStore {
    /// The store.
    type Store: Store + Views;

    /// To ask it.
    fn store(&mut self) -> &mut Self::Store;

    /// To look at it.
    fn views(&self) -> &Self::Store;

    /// Sets its clock.
    fn set_now(&mut self, now: Timestamp);

    /// Another primary takes over, with all that was written.
    fn fail_over(&mut self);
}

impl TestStore for ReferenceStore {
    type Store = ReferenceStore;

    fn store(&mut self) -> &mut ReferenceStore {
        self
    }

    fn views(&self) -> &ReferenceStore {
        self
    }

    fn set_now(&mut self, now: Timestamp) {
        ReferenceStore::set_now(self, now);
    }

    fn fail_over(&mut self) {
        ReferenceStore::fail_over(self, self.epoch());
    }
}

/// Where two stores part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Of which seed.
    pub seed: u64,
    /// The number of requests before it.
    pub step: usize,
    /// What was asked.
    pub asked: String,
    /// What the reference answers.
    pub reference: String,
    /// What the store answers.
    pub store: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { seed, step, asked, reference, store } = self;
        write!(
            f,
            "seed {seed}, request {step}\n  asked:     {asked}\n  reference: {reference}\n  store:     {store}"
        )
    }
}

/// The first request of a story that a store answers otherwise than the reference, or after which
/// it shows something else. The store is empty.
pub fn compare<S: TestStore>(store: &mut S, seed: u64, n_requests: usize) -> Result<(), Difference> {
    let mut story = Story::new(seed);
    let mut reference = ReferenceStore::new(story.now());
    store.set_now(story.now());
    let (mut here, mut there) = (request::Asker::default(), request::Asker::default());
    for step in 0..n_requests {
        let request = story.next(&reference);
        let mut expected = here.ask(&mut reference, &request);
        let found = there.ask(store, &request);
        if matches!(request, Request::Changes(_)) && there.was_reset && !here.was_reset {
            // A store may forget what was long ago, and then starts from the beginning.
            here.begin_anew();
            expected = here.ask(&mut reference, &request);
        }
        let difference = |reference: String, found: String| Difference {
            seed,
            step,
            asked: format!("{request:?}"),
            reference,
            store: found,
        };
        if expected != found {
            return Err(difference(expected, found));
        }
        // All of it now and then: what is shown follows from what was answered, mostly.
        if step % 16 == 15 || step + 1 == n_requests {
            let (expected, found) = (request::shown(&reference), request::shown(store.views()));
            if let Some((expected, found)) = expected.into_iter().zip(found).find(|(one, other)| one != other)
            {
                return Err(difference(expected, found));
            }
            check_totals(store.views())
                .map_err(|unbalanced| difference("books that balance".to_owned(), unbalanced))?;
        }
        story.hear(&reference);
    }
    Ok(())
}
