//! What was written about a job, in one spelling: aliases, presets and short forms resolved.

use std::collections::{BTreeMap, BTreeSet};

use super::fields::{self, Meaning, SCHEDULE_KINDS, TARGET_KINDS, Translation};
use super::scalar;
use super::{Origin, Place, SpecError, SpecFault};
use crate::nearest::nearest;
use crate::schedule::Preset;
use crate::schedule::cron::{CronRule, CronText};
use crate::time::Duration;
use crate::value::{Path, Step, Table, Value};

/// A job as it was written, under the canonical names of its fields.
///
/// Values are as they were written, and may be wrong; [`JobSpec::validate`] tells. Two are equal if
/// they say the same, wherever they were written.
#[derive(Clone, Debug, Default)]
pub struct JobSpec {
    pub(super) table: Table,
    /// Where fields were written, by canonical path; what lies below a path stands below its place.
    pub(super) places: BTreeMap<Path, Place>,
    pub(super) faults: Vec<SpecFault>,
    /// What was spoken about in a way that could not be understood. It is not missing as well.
    pub(super) unclear: BTreeSet<Subject>,
}

impl PartialEq for JobSpec {
    fn eq(&self, other: &JobSpec) -> bool {
        self.table == other.table
    }
}

/// Something that every job must say one thing about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Name,
    Target,
    Schedule,
}

impl JobSpec {
    /// What a job's own table says.
    pub fn read(table: &Table) -> JobSpec {
        JobSpec::read_from(Origin::Job, table)
    }

    /// The spec in a stored table. If all of it is canonical, as everything that we store is, it is taken as it
    /// is: jobs are read back much more often than they are written.
    pub fn read_stored(table: Table) -> JobSpec {
        let is_canonical = |(name, value): (&String, &Value)| match value {
            Value::Null => false,
            // It may have a zone in front, or be an interval.
            Value::Text(text) if name == "cron" && text.contains(['=', '@']) => false,
            _ => matches!(fields::meaning(name), Meaning::Field(field) if field == name),
        };
        if table.iter().all(is_canonical) {
            JobSpec { table, ..JobSpec::default() }
        } else {
            JobSpec::read(&table)
        }
    }

    /// What a table says, be it a job's own or one of defaults.
    pub fn read_from(origin: Origin, table: &Table) -> JobSpec {
        let mut reading = SpecBuilder { origin, ..SpecBuilder::default() };
        reading.fields(table, &Path::root(), Scope::Job);
        reading.finish_interval();
        reading.finish_pause_after_failures();
        reading.finish_cron();
        reading.spec
    }

    /// The canonical table, for export, comparison and storage. Read again, it is the same spec.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The names that could not be understood. [`JobSpec::validate`] reports them as well.
    pub fn faults(&self) -> &[SpecFault] {
        &self.faults
    }

    /// Where the value at a canonical path was written.
    pub fn place_of(&self, path: &Path) -> Place {
        let steps = path.steps();
        for n_known in (0..=steps.len()).rev() {
            let (known, below) = steps.split_at(n_known);
            if let Some(place) = self.places.get(&path_of(&Path::root(), known)) {
                return Place { path: path_of(&place.path, below), ..place.clone() };
            }
        }
        Place::new(Origin::Job, path.clone())
    }

    /// Whether it was written at all, understood or not.
    pub(super) fn speaks_of(&self, subject: Subject) -> bool {
        self.unclear.contains(&subject)
            || fields_of(subject).iter().any(|field| self.table.contains_key(*field))
    }
}

fn path_of(start: &Path, steps: &[Step]) -> Path {
    steps.iter().fold(start.clone(), |path, step| match step {
        Step::Key(key) => path.key(key),
        Step::Index(index) => path.index(*index),
    })
}

fn fields_of(subject: Subject) -> &'static [&'static str] {
    match subject {
        Subject::Name => &["name"],
        Subject::Target => &TARGET_KINDS,
        Subject::Schedule => &SCHEDULE_KINDS,
    }
}

/// The subject that a written name belongs to.
fn subject_of(name: &str) -> Option<Subject> {
    match name {
        "key" => Some(Subject::Name),
        "schedule" | "interval" | "interval_minutes" => Some(Subject::Schedule),
        _ => {
            let Meaning::Field(field) = fields::meaning(name) else { return None };
            [Subject::Name, Subject::Target, Subject::Schedule]
                .into_iter()
                .find(|subject| fields_of(*subject).contains(&field))
        }
    }
}

/// What belongs to one job.
const NOT_DEFAULTS: [&str; 3] = ["name", "configuration", "key"];

/// Which names may stand in a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Job,
    Schedule,
}

/// A spec in the making.
#[derive(Default)]
struct SpecBuilder {
    spec: JobSpec,
    origin: Origin,
    // What can be settled only when everything has been seen.
    interval_number: Option<(Value, Place)>,
    interval_unit: Option<(Value, Place)>,
    pause_after_failures: Option<(Value, Place)>,
    custom_cron: Option<Place>,
}

impl SpecBuilder {
    fn fields(&mut self, table: &Table, at: &Path, scope: Scope) {
        if scope == Scope::Job {
            self.spec.places.insert(Path::root(), Place::new(self.origin.clone(), Path::root()));
        }
        for (name, value) in table {
            let meaning = fields::meaning(name);
            let is_canonical = matches!(meaning, Meaning::Field(field) if field == name);
            if scope == Scope::Job && is_canonical && self.is_new(name, value) {
                // It stands where the table says, and needs no place of its own.
                self.spec.table.insert(name.clone(), value.clone());
                continue;
            }
            let place = Place::new(self.origin.clone(), at.key(name));
            if meaning == Meaning::Unknown {
                self.unknown(name, place, scope);
            } else if scope == Scope::Schedule && !fields::fits_in_schedule(name) {
                self.fault(place, SpecError::NotInSchedule { field: name.clone() });
            } else if self.origin != Origin::Job && NOT_DEFAULTS.contains(&name.as_str()) {
                self.fault(place, SpecError::NotADefault { field: name.clone() });
            } else if let Meaning::Computed(field) = meaning {
                self.fault(place, SpecError::Computed { field });
            } else if *value == Value::Null {
                // Documents of other tools spell out what they do not say.
            } else if let Meaning::Field(field) = meaning {
                self.put(field, value.clone(), place);
            } else if let Meaning::Translation(turn) = meaning {
                self.turn(turn, value, place);
            }
        }
    }

    /// Whether a field under its canonical name can be taken as it is.
    fn is_new(&self, field: &str, value: &Value) -> bool {
        let may_stand_here = self.origin == Origin::Job || !NOT_DEFAULTS.contains(&field);
        may_stand_here && *value != Value::Null && !self.spec.table.contains_key(field)
    }

    fn turn(&mut self, turn: Translation, value: &Value, place: Place) {
        let field = place.path.to_string();
        match turn {
            Translation::Key => match scalar::text(&field, value) {
                Ok(text) => self.key(text, &place),
                Err(error) => self.unclear(Subject::Name, place, error),
            },
            Translation::Schedule => match value {
                Value::Table(table) => self.fields(table, &place.path, Scope::Schedule),
                Value::Text(text) => self.preset(&field, text, place),
                _ => {
                    let expected = "the name of a preset, or a table of schedule fields";
                    self.unclear(Subject::Schedule, place, scalar::wrong_kind(&field, expected, value));
                }
            },
            Translation::Interval => match scalar::text(&field, value) {
                Ok(text) => self.preset(&field, text, place),
                Err(error) => self.unclear(Subject::Schedule, place, error),
            },
            Translation::IntervalNumber => self.interval_number = Some((value.clone(), place)),
            Translation::IntervalUnit => self.interval_unit = Some((value.clone(), place)),
            Translation::PauseAfterFailures => self.pause_after_failures = Some((value.clone(), place)),
            Translation::PausedBySystem => match scalar::truth(&field, value) {
                Ok(true) => self.put("paused_by", "system".into(), place),
                Ok(false) => {}
                Err(error) => self.fault(place, error),
            },
            Translation::AllowParallelRuns => match scalar::truth(&field, value) {
                Ok(true) => self.put("overlap", "allow".into(), place),
                Ok(false) => self.put("overlap", "skip".into(), place),
                Err(error) => self.fault(place, error),
            },
        }
    }

    fn key(&mut self, text: &str, place: &Place) {
        match text.split_once('@') {
            Some((name, configuration)) => {
                let at = name.len();
                self.put("name", name.into(), place.clone().with_part(0..at));
                let part = at + 1..text.len();
                self.put("configuration", configuration.into(), place.clone().with_part(part));
            }
            None => self.put("name", text.into(), place.clone()),
        }
    }

    fn preset(&mut self, field: &str, text: &str, place: Place) {
        match text.parse::<Preset>() {
            Ok(Preset::Manual) => self.put("manual", Value::Bool(true), place),
            Ok(Preset::Every(interval)) => self.put("every", interval.to_string().as_str().into(), place),
            Ok(Preset::CustomCron) => self.custom_cron = Some(place),
            Err(_) => {
                let choices: Vec<&str> = Preset::names().collect();
                self.unclear(Subject::Schedule, place, scalar::unknown_word(&field, text, choices));
            }
        }
    }

    /// `interval_minutes = 6` with `interval_type = "hours"` is six hours.
    fn finish_interval(&mut self) {
        let unit = self.interval_unit.take();
        let Some((number, place)) = self.interval_number.take() else {
            if let Some((_, place)) = unit {
                self.unclear(Subject::Schedule, place, SpecError::UnitWithoutNumber);
            }
            return;
        };
        let one = match unit {
            None => Ok(Duration::from_mins(1)),
            Some((value, place)) => {
                let units = [
                    ("minutes", Duration::from_mins(1)),
                    ("hours", Duration::from_hours(1)),
                    ("days", Duration::from_days(1)),
                ];
                scalar::word(&place.path.to_string(), &value, &units).map_err(|error| (place, error))
            }
        };
        let field = place.path.to_string();
        let most = Duration::LONGEST.as_millis() / one.as_ref().map_or(60_000, |it| it.as_millis());
        let number = scalar::whole(&field, &number, 1, most).map_err(|error| (place.clone(), error));
        match (one, number) {
            (Ok(one), Ok(number)) => self.put("every", (one * number).to_string().as_str().into(), place),
            (one, number) => {
                for (place, error) in one.err().into_iter().chain(number.err()) {
                    self.unclear(Subject::Schedule, place, error);
                }
            }
        }
    }

    fn finish_pause_after_failures(&mut self) {
        const FIELD: &str = "pause_after_failures";
        let Some((value, place)) = self.pause_after_failures.take() else { return };
        let path = Path::root().key("retry");
        if !self.spec.table.contains_key("retry") {
            self.put("retry", Value::Table(Table::new()), place.clone());
        }
        // A `retry` that is not a table is a fault in any case.
        let Some(Value::Table(retry)) = self.spec.table.get_mut("retry") else { return };
        if retry.contains_key(FIELD) {
            let first = self.spec.place_of(&path.key(FIELD));
            self.written_twice(FIELD, first, place);
            return;
        }
        retry.insert(FIELD.to_owned(), value);
        self.spec.places.insert(path.key(FIELD), place);
    }

    /// A zone in front of the expression is the job's zone, and `@every` an interval.
    fn finish_cron(&mut self) {
        let path = Path::root().key("cron");
        let Some(Value::Text(text)) = self.spec.table.get("cron").cloned() else {
            if let Some(place) = self.custom_cron.take() {
                self.unclear(Subject::Schedule, place, SpecError::PresetNeedsCron);
            }
            return;
        };
        // Without a zone or `@every` there is nothing to take apart.
        if !text.contains(['=', '@']) {
            return;
        }
        // What cannot be read stays as it is, for `validate` to say why.
        let Ok(CronText { zone, rule }) = text.parse::<CronText>() else { return };
        let place = self.spec.place_of(&path);
        if let Some(zone) = &zone {
            self.zone_of_cron(&zone.name, place.clone().with_part(zone.span.clone()));
        }
        match rule {
            CronRule::Every(interval) => {
                self.spec.table.remove("cron");
                self.spec.places.remove(&path);
                self.put("every", interval.to_string().as_str().into(), place);
            }
            CronRule::Cron(_) => {
                let Some(zone) = zone else { return };
                let after_zone = text.get(zone.span.end..).unwrap_or_default();
                let expression = after_zone.trim();
                let start = text.len() - after_zone.trim_start().len();
                self.spec.table.insert("cron".to_owned(), expression.into());
                self.spec.places.insert(path, place.with_part(start..start + expression.len()));
            }
        }
    }

    fn zone_of_cron(&mut self, name: &str, place: Place) {
        match self.spec.table.get("tz") {
            None => self.put("tz", name.into(), place),
            Some(Value::Text(tz)) if tz.eq_ignore_ascii_case(name) => {}
            Some(Value::Text(tz)) => {
                let error = SpecError::TwoZones { in_cron: name.to_owned(), tz: tz.clone() };
                let other = Some(self.spec.place_of(&Path::root().key("tz")));
                self.spec.faults.push(SpecFault { place, other, error });
            }
            // A `tz` that is not a text is a fault in any case.
            Some(_) => {}
        }
    }

    fn put(&mut self, field: &'static str, value: Value, place: Place) {
        let path = Path::root().key(field);
        if self.spec.table.contains_key(field) {
            let first = self.spec.place_of(&path);
            self.written_twice(field, first, place);
            return;
        }
        self.spec.table.insert(field.to_owned(), value);
        self.spec.places.insert(path, place);
    }

    fn written_twice(&mut self, field: &'static str, first: Place, second: Place) {
        let (first_shown, second_shown) = (first.path.to_string(), second.path.to_string());
        let names_it = |place: &Place| match place.path.steps().last() {
            Some(Step::Key(key)) => fields::meaning(key) == Meaning::Field(field),
            _ => false,
        };
        // A preset and an interval are two rules, whatever field both end up in.
        let two_rules = SCHEDULE_KINDS.contains(&field) && !(names_it(&first) && names_it(&second));
        let error = if two_rules {
            SpecError::TwoSchedules { first: first_shown, second: second_shown }
        } else {
            SpecError::WrittenTwice { field: field.to_owned(), first: first_shown, second: second_shown }
        };
        self.spec.faults.push(SpecFault { place: second, other: Some(first), error });
    }

    fn unknown(&mut self, name: &str, place: Place, scope: Scope) {
        let (inside, known): (_, Vec<&str>) = match scope {
            Scope::Job => (None, fields::all_names().collect()),
            Scope::Schedule => (Some("schedule"), fields::schedule_names().collect()),
        };
        let way_out = fields::way_out(name).filter(|_| scope == Scope::Job);
        let nearest = nearest(name, known.iter().copied()).filter(|_| way_out.is_none());
        // A mistyped `comand` is not a forgotten target.
        self.spec.unclear.extend(nearest.and_then(subject_of));
        let field = crate::nearest::shortened(name);
        let nearest = nearest.map(str::to_owned);
        self.fault(place, SpecError::UnknownField { field, inside, nearest, way_out, known });
    }

    fn unclear(&mut self, subject: Subject, place: Place, error: SpecError) {
        self.spec.unclear.insert(subject);
        self.fault(place, error);
    }

    fn fault(&mut self, place: Place, error: SpecError) {
        self.spec.faults.push(SpecFault { place, other: None, error });
    }
}
