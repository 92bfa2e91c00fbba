//! The figures as a table for people and as JSON for machines.

use std::fmt::Write as _;

use super::machine::{machine, machine_json, write_json};

use crate::measure::Spread;

/// One thing that was measured.
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    ours: Spread,
    /// A sort of packed integers, and one of (time, text) pairs.
    others: Option<[Spread; 2]>,
    bytes_each: Option<f64>,
}

impl Row {
    pub(crate) fn new(what: &str, unit: &'static str, ours: Spread) -> Row {
        Row { what: what.to_owned(), unit, ours, others: None, bytes_each: None }
    }

    pub(crate) fn beside(self, packed: Spread, pairs: Spread) -> Row {
        Row { others: Some([packed, pairs]), ..self }
    }

    pub(crate) fn with_bytes(self, bytes_each: f64) -> Row {
        Row { bytes_each: Some(bytes_each), ..self }
    }

    fn cells(&self) -> [String; 8] {
        let Spread { p50, p95, p99 } = self.ours;
        let or_nothing = |figure: Option<String>| figure.unwrap_or_default();
        let packed = self.others.map(|[packed, _]| packed.p50);
        let pairs = self.others.map(|[_, pairs]| pairs.p50);
        [
            shown(p50),
            shown(p95),
            shown(p99),
            or_nothing(packed.map(shown)),
            or_nothing(packed.map(|it| shown(it / p50))),
            or_nothing(pairs.map(shown)),
            or_nothing(pairs.map(|it| shown(it / p50))),
            or_nothing(self.bytes_each.map(shown)),
        ]
    }
}

/// All figures of one run.
pub(crate) struct Report {
    name: &'static str,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(name: &'static str) -> Report {
        Report { name, rows: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Something that a reader of the table must not overlook.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Notes that a row misses its target, if there is such a row.
    pub(crate) fn expect(&mut self, what: &str, target: f64) {
        self.expect_of(what, "p50", |spread| spread.p50, target);
    }

    /// The same for the slowest hundredth.
    pub(crate) fn expect_p99(&mut self, what: &str, target: f64) {
        self.expect_of(what, "p99", |spread| spread.p99, target);
    }

    fn expect_of(&mut self, what: &str, share: &str, pick: fn(&Spread) -> f64, target: f64) {
        let Some(row) = self.rows.iter().find(|row| row.what == what) else { return };
        let (found, unit) = (pick(&row.ours), row.unit);
        if target < found {
            self.notes
                .push(format!("{what}: {share} is {} {unit}, the target is {target} {unit}", shown(found)));
        }
    }

    /// Notes every row that takes more memory than this.
    pub(crate) fn expect_bytes(&mut self, target: f64) {
        let fat = self.rows.iter().filter(|row| row.bytes_each.is_some_and(|bytes| target < bytes));
        let notes = fat.map(|row| format!("{}: more than {target} bytes an occurrence", row.what));
        self.notes.extend(notes.collect::<Vec<_>>());
    }

    pub(crate) fn print(&self) {
        println!("{}: {}", self.name, machine());
        let heads = ["p50", "p95", "p99", "sort u64", "ratio", "sort pairs", "ratio", "bytes each"];
        println!("{:<50} {:>4}{}", "", "unit", joined(&heads.map(str::to_owned)));
        for row in &self.rows {
            println!("{:<50} {:>4}{}", row.what, row.unit, joined(&row.cells()));
        }
        for note in &self.notes {
            println!("note: {note}");
        }
    }

    /// Writes the figures beside those of the other benchmarks.
    pub(crate) fn write(&self) {
        write_json(self.name, &self.to_json());
    }

    fn to_json(&self) -> String {
        let mut json = format!("{{\n  \"bench\": \"{}\",\n  {},\n  \"rows\": [", self.name, machine_json());
        for (row_idx, row) in self.rows.iter().enumerate() {
            let separator = if row_idx == 0 { "" } else { "," };
            // Names and units are words of this benchmark: there is nothing to escape.
            let _ = write!(
                json,
                "{separator}\n    {{\"what\": \"{}\", \"unit\": \"{}\", {}",
                row.what,
                row.unit,
                fields("", &row.ours)
            );
            if let Some([packed, pairs]) = &row.others {
                let _ = write!(json, ", {}, {}", fields("sort_u64_", packed), fields("sort_pairs_", pairs));
            }
            if let Some(bytes_each) = row.bytes_each {
                let _ = write!(json, ", \"bytes_each\": {}", shown(bytes_each));
            }
            json.push('}');
        }
        json.push_str("\n  ]\n}\n");
        json
    }
}

fn fields(prefix: &str, Spread { p50, p95, p99 }: &Spread) -> String {
    let [p50, p95, p99] = [p50, p95, p99].map(|it| shown(*it));
    format!("\"{prefix}p50\": {p50}, \"{prefix}p95\": {p95}, \"{prefix}p99\": {p99}")
}

fn joined(cells: &[String]) -> String {
    cells.iter().fold(String::new(), |line, cell| line + &format!(" {cell:>11}"))
}

/// Whole numbers as such, others with two digits.
fn shown(figure: f64) -> String {
    let digits = if figure.fract() == 0.0 { 0 } else { 2 };
    format!("{figure:.digits$}")
}
