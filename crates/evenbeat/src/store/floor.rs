//! The greatest fence and version of removed jobs whose rows were trimmed. New jobs start from there, so that a job
//! whose key was used before never repeats a fence or a version.

use evenbeat_core::ids::Fence;
use evenbeat_core::store::Version;

use super::columns::number;

/// The fence and version that every new job starts with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) fence: Fence,
    pub(super) version: Version,
}

impl Floor {
    /// The setting that stores it.
    pub(super) const SETTING: &'static str = "job_floor";

    pub(super) fn of_stored(fence: i64, version: i64) -> Floor {
        Floor { fence: Fence(number(fence)), version: Version(number(version)) }
    }

    #[must_use]
    pub(super) fn raised(self, other: &Floor) -> Floor {
        Floor { fence: self.fence.max(other.fence), version: self.version.max(other.version) }
    }

    pub(super) fn to_text(self) -> String {
        format!("{} {}", self.fence.0, self.version.0)
    }

    /// Reads what [`Floor::to_text`] wrote. Nothing else writes it.
    pub(super) fn from_text(text: &str) -> Floor {
        let mut numbers = text.split(' ').map(|it| it.parse().unwrap_or(0));
        let (fence, version) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Floor { fence: Fence(fence), version: Version(version) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_comes_back_and_is_only_raised() {
        let floor = Floor::of_stored(7, 9).raised(&Floor::of_stored(8, 3));
        assert_eq!(floor, Floor { fence: Fence(8), version: Version(9) });
        assert_eq!(Floor::from_text(&floor.to_text()), floor);
    }
}
