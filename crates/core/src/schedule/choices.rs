//! What was chosen for each `H` of a cron expression.

use std::fmt;
use std::ops::Deref;

/// A choice for each `H`, in order of appearance; a row of numbers that is empty for most jobs and
/// then takes no more than a pointer's room.
#[derive(Clone, Default, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a million empty ones must be small; of the others there are few")]
pub struct Choices(Option<Box<Vec<u8>>>);

impl From<Vec<u8>> for Choices {
    fn from(choices: Vec<u8>) -> Choices {
        Choices((!choices.is_empty()).then(|| Box::new(choices)))
    }
}

impl Deref for Choices {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |choices| choices.as_slice())
    }
}

impl fmt::Debug for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_take_a_pointer_and_are_all_the_same() {
        assert_eq!(size_of::<Choices>(), 8);
        assert_eq!(Choices::from(Vec::new()), Choices::default());
        assert_eq!(*Choices::from(vec![7, 3]), [7, 3]);
        assert_eq!(*Choices::default(), []);
    }
}
