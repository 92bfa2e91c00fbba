//! Migrations from an empty database to the current tables, and which of them a database still needs.
//!
//! Migrations only go forward and never change once they were released. Each database lists the applied ones in its
//! table `migration(no, name, checksum, applied_at)`. Nothing here talks to a database.

use evenbeat_core::ids::stable_hash;

/// One migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Its number. The first is 1, and there are no gaps.
    pub no: i64,
    /// A short name.
    pub name: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

impl Migration {
    /// A checksum of its statements, to recognise a migration that was changed.
    pub fn checksum(&self) -> String {
        format!("{:016x}", stable_hash(self.sql.as_bytes()))
    }
}

/// A migration that was applied to a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its number.
    pub no: i64,
    /// Its name.
    pub name: String,
    /// The checksum of its statements.
    pub checksum: String,
}

/// Why a database is not migrated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationFault {
    /// A later version of this program has used it.
    #[error(
        "the tables are of a newer version than this program (step {found}, `{name}`; this program knows {known}); \
         use the newer program, or restore a backup from before the upgrade"
    )]
    Newer {
        /// The last applied migration.
        found: i64,
        /// Its name.
        name: String,
        /// The last migration that this program knows.
        known: i64,
    },
    /// An applied migration differs from the one of this program.
    #[error(
        "step {no} of the tables, `{name}`, was not made by a release of this program (checksum {found}, expected \
         {expected}); use the program that made it, or restore a backup"
    )]
    Changed {
        /// Its number.
        no: i64,
        /// Its name.
        name: String,
        /// The checksum in the database.
        found: String,
        /// The checksum of this program.
        expected: String,
    },
    /// A migration is missing between others.
    #[error("step {no} of the migrations is missing, but later ones are present; restore a backup")]
    Gap {
        /// Its number.
        no: i64,
    },
}

/// The migrations that are still to be applied, given the applied ones in order.
pub fn missing<'a>(
    known: &'a [Migration],
    applied: &[AppliedMigration],
) -> Result<&'a [Migration], MigrationFault> {
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
            AppliedMigration { no: *no, name: "step".to_owned(), checksum }
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
