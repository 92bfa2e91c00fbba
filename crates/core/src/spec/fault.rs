//! Where something was written, and what is wrong there.

use std::ops::Range;

use super::{SpecError, SpecWarning};
use crate::value::Path;

/// Which table something was written in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The job's own.
    #[default]
    Job,
    /// What holds for all jobs of a file.
    Defaults,
    /// What holds for all jobs that pick this template.
    Template(String),
}

/// Where something was written, in the writer's own spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// In which table.
    pub origin: Origin,
    /// Where in that table; the root if something is missing from it.
    pub path: Path,
    /// Which bytes of the text there, if not all of it.
    pub part: Option<Range<usize>>,
}

impl Place {
    /// All of what stands at a path.
    pub fn new(origin: Origin, path: Path) -> Place {
        Place { origin, path, part: None }
    }

    /// These bytes of the text there, counted from the part that this place already is.
    #[must_use]
    pub fn with_part(self, part: Range<usize>) -> Place {
        let shift = self.part.as_ref().map_or(0, |it| it.start);
        Place { part: Some(part.start + shift..part.end + shift), ..self }
    }
}

/// Something that keeps a job from being accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecFault {
    /// Where it stands.
    pub place: Place,
    /// The other place, where two of them contradict each other.
    pub other: Option<Place>,
    /// What is wrong.
    pub error: SpecError,
}

/// Something that a job is accepted with, and that its owner should know (J6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it stands.
    pub place: Place,
    /// What is doubtful.
    pub warning: SpecWarning,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_part_is_counted_from_the_whole() {
        let place = Place::new(Origin::Job, Path::root().key("cron"));
        assert_eq!(place.clone().with_part(2..4).part, Some(2..4));
        assert_eq!(place.with_part(10..20).with_part(2..4).part, Some(12..14));
    }
}
