//! Steps from an empty database to today's tables, and what may be done with a database that has taken some of them.
//!
//! Steps only go forward and never change once they were released. What a database has taken stands in its table
//! `migration(no, name, checksum, applied_at)`. Nothing here speaks to a database.

use evenbeat_core::ids::stable_hash;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number, from 1 on, without gaps.
    pub no: i64,
    /// What it does, in a word.
    pub name: &'static str,
    /// How.
    pub sql: &'static str,
}

impl Migration {
    /// Tells whether its text is the one that was applied.
    pub fn checksum(&self) -> String {
        format!("{:016x}", stable_hash(self.sql.as_bytes()))
    }
}

/// A step that a database has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Its number.
    pub no: i64,
    /// Its name.
    pub name: String,
    /// Of its text.
    pub checksum: String,
}

/// Why a database is left alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationFault {
    /// It was used by a later version of this program.
    #[error(
        "the tables are of a newer version than this program (step {found}, `{name}`; this program knows {known}); \
         use the newer program, or restore a backup from before the upgrade"
    )]
    Newer {
        /// The last step that was taken.
        found: i64,
        /// Its name.
        name: String,
        /// The last step that is known.
        known: i64,
    },
    /// A step is not the one that this program would take.
    #[error(
        "step {no} of the tables, `{name}`, was not made by a release of this program (checksum {found}, expected \
         {expected}); use the program that made it, or restore a backup"
    )]
    Changed {
        /// Its number.
        no: i64,
        /// Its name.
        name: String,
        /// What stands in the database.
        found: String,
        /// What this program would have written.
        expected: String,
    },
    /// A step is missing between others.
    #[error("step {no} of the migrations is missing, but later ones are present; restore a backup")]
    Gap {
        /// Its number.
        no: i64,
    },
}

/// The steps that are still to be taken, given those that were, in order of their numbers.
pub fn missing<'a>(known: &'a [Migration], applied: &[Applied]) -> Result<&'a [Migration], MigrationFault> {
    let last_known = known.last().map_or(0, |it| it.no);
    if let Some(newest) = applied.last().filter(|it| last_known < it.no) {
        return Err(MigrationFault::Newer { found: newest.no, name: newest.name.clone(), known: last_known });
    }
    for (step, found) in known.iter().zip(applied) {
        if step.no != found.no {
            return Err(MigrationFault::Gap { no: step.no });
        }
        let expected = step.checksum();
        if found.checksum != expected {
            let (no, name) = (step.no, step.name.to_owned());
            return Err(MigrationFault::Changed { no, name, found: found.checksum.clone(), expected });
        }
    }
    Ok(known.get(applied.len()..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Migration; 3] = [
        Migration { no: 1, name: "begin", sql: "CREATE TABLE a" },
        Migration { no: 2, name: "more", sql: "CREATE TABLE b" },
        Migration { no: 3, name: "less", sql: "DROP TABLE a" },
    ];

    #[track_caller]
    fn check(applied: &[(i64, &str)], expected: &str) {
        let row = |(no, checksum): &(i64, &str)| {
            let known = KNOWN.iter().find(|it| it.no == *no);
            let checksum = match (*checksum, known) {
                ("same", Some(known)) => known.checksum(),
                (other, _) => other.to_owned(),
            };
            Applied { no: *no, name: "step".to_owned(), checksum }
        };
        let shown = match missing(&KNOWN, &applied.iter().map(row).collect::<Vec<_>>()) {
            Ok(steps) => format!("{:?}", steps.iter().map(|it| it.no).collect::<Vec<_>>()),
            Err(fault) => fault.to_string().split(';').next().unwrap().to_owned(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_missing_is_what_comes_after() {
        check(&[], "[1, 2, 3]");
        check(&[(1, "same")], "[2, 3]");
        check(&[(1, "same"), (2, "same"), (3, "same")], "[]");
    }

    #[test]
    fn another_history_is_left_alone() {
        check(
            &[(1, "same"), (4, "x")],
            "the tables are of a newer version than this program (step 4, `step`",
        );
        check(&[(2, "same")], "step 1 of the migrations is missing, but later ones are present");
        let second = KNOWN[1].checksum();
        check(
            &[(1, "same"), (2, "ffff")],
            &format!(
                "step 2 of the tables, `more`, was not made by a release of this program (checksum ffff, expected \
                 {second})"
            ),
        );
    }

    #[test]
    fn a_checksum_never_changes() {
        assert_eq!(KNOWN[0].checksum(), KNOWN[0].checksum());
        assert_ne!(KNOWN[0].checksum(), KNOWN[1].checksum());
    }
}
