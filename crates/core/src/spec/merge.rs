//! What a job does not say, a table of defaults may.

use std::collections::btree_map::Entry;

use super::JobSpec;
use super::fields::{SCHEDULE_KINDS, TARGET_KINDS};
use super::read::Subject;
use crate::value::{Path, Step, Table, Value};

/// Tables of which each entry is a choice of its own.
const BY_ENTRY: [&str; 3] = ["labels", "params", "retry"];

/// How any command runs.
const OF_ANY_COMMAND: [&str; 5] = ["cwd", "env", "env_pass", "grace", "stdin"];

impl JobSpec {
    /// The same, filled up from defaults.
    ///
    /// A field of the job wins over the same field of the defaults; `labels`, `params` and `retry`
    /// are merged entry by entry, and so is how commands run (`cwd`, `env`, `env_pass`, `grace`, `stdin`; `env` by
    /// variable). A job that chooses its schedule takes no part of another one from the defaults, and a job that
    /// chooses its target no other target.
    #[must_use]
    pub fn over(self, defaults: &JobSpec) -> JobSpec {
        let chooses_schedule = self.speaks_of(Subject::Schedule);
        let chooses_target = self.speaks_of(Subject::Target);
        let own = self.table.clone();
        let mut merged = self;
        for (field, value) in &defaults.table {
            let name = field.as_str();
            let of_other_schedule =
                chooses_schedule && (SCHEDULE_KINDS.contains(&name) || name == "next_run_at");
            let of_other_target = chooses_target && TARGET_KINDS.contains(&name);
            if name == "command" && own.contains_key(name) {
                merged.take_command(value, defaults);
            }
            if of_other_schedule || of_other_target {
                continue;
            }
            match merged.table.get(field) {
                None => merged.take(field, value, defaults),
                Some(_) if BY_ENTRY.contains(&name) => merged.take_entries(field, value, defaults),
                Some(_) => {}
            }
        }
        let is = |merged: &JobSpec, field: &str| merged.table.contains_key(field);
        let mut unfit = Vec::new();
        if chooses_schedule && !is(&merged, "fresh") {
            unfit.push("cooldown");
        }
        if chooses_schedule && (is(&merged, "fresh") || is(&merged, "manual")) {
            unfit.push("finish_within");
        }
        if own.get("overlap").is_some_and(|overlap| overlap.as_text() != Some("allow")) {
            unfit.push("max_parallel");
        }
        if own.get("paused") == Some(&Value::Bool(false)) {
            unfit.extend(["paused_by", "pause_reason"]);
        }
        for field in unfit {
            if !own.contains_key(field) {
                merged.table.remove(field);
            }
        }
        if !chooses_schedule && defaults.unclear.contains(&Subject::Schedule) {
            merged.unclear.insert(Subject::Schedule);
        }
        if !chooses_target && defaults.unclear.contains(&Subject::Target) {
            merged.unclear.insert(Subject::Target);
        }
        merged.faults.extend(defaults.faults.iter().cloned());
        merged
    }

    fn take(&mut self, field: &str, value: &Value, defaults: &JobSpec) {
        self.table.insert(field.to_owned(), value.clone());
        // Where it stands in the defaults need not be on record there, but is here.
        let path = Path::root().key(field);
        self.places.insert(path.clone(), defaults.place_of(&path));
        let below = |path: &Path| path.steps().first() == Some(&Step::Key(field.to_owned()));
        let places = defaults.places.iter().filter(|(path, _)| below(path));
        self.places.extend(places.map(|(path, place)| (path.clone(), place.clone())));
    }

    /// How the command of the defaults runs, for a job with a command of its own.
    fn take_command(&mut self, value: &Value, defaults: &JobSpec) {
        let Value::Table(theirs) = value else { return };
        let shared: Table = theirs
            .iter()
            .filter(|(name, _)| OF_ANY_COMMAND.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let path = Path::root().key("command");
        let Some(own) = self.table.get("command").filter(|_| !shared.is_empty()) else { return };
        if !matches!(own, Value::Table(_)) {
            // The short form: a list of words, or what will be refused as one.
            let argv = own.clone();
            self.places.insert(path.key("argv"), self.place_of(&path));
            self.table.insert("command".to_owned(), Value::Table([("argv".to_owned(), argv)].into()));
        }
        let Some(Value::Table(own)) = self.table.get_mut("command") else { return };
        for (entry, value) in shared {
            match (own.get_mut(&entry), value) {
                (None, value) => {
                    own.insert(entry.clone(), value);
                    self.places.insert(path.key(&entry), defaults.place_of(&path.key(&entry)));
                }
                (Some(Value::Table(own)), Value::Table(theirs)) if entry == "env" => {
                    for (variable, value) in theirs {
                        if let Entry::Vacant(free) = own.entry(variable) {
                            let path = path.key("env").key(free.key());
                            self.places.insert(path.clone(), defaults.place_of(&path));
                            free.insert(value);
                        }
                    }
                }
                (Some(_), _) => {}
            }
        }
    }

    fn take_entries(&mut self, field: &str, value: &Value, defaults: &JobSpec) {
        let (Some(Value::Table(own)), Value::Table(theirs)) = (self.table.get_mut(field), value) else {
            return;
        };
        for (entry, value) in theirs {
            if !own.contains_key(entry) {
                own.insert(entry.clone(), value.clone());
                let path = Path::root().key(field).key(entry);
                self.places.insert(path.clone(), defaults.place_of(&path));
            }
        }
    }
}
