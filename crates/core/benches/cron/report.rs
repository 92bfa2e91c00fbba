//! The figures as a table for people and as JSON for machines.

use std::fmt::Write as _;

use super::machine::{machine, machine_json, write_json};

const CONTENDERS: [&str; 3] = ["evenbeat", "croner", "cronexpr"];

/// One figure of all contenders.
pub(crate) struct Row {
    what: String,
    unit: &'static str,
    ours: f64,
    others: [f64; 2],
}

impl Row {
    pub(crate) fn new(what: String, unit: &'static str, (ours, others): (f64, [f64; 2])) -> Row {
        Row { what, unit, ours, others }
    }

    #[allow(clippy::cast_precision_loss, reason = "no figure here has 16 digits")]
    pub(crate) fn whole(what: String, unit: &'static str, ours: u64, others: [u64; 2]) -> Row {
        Row::new(what, unit, (ours as f64, others.map(|other| other as f64)))
    }

    /// How many times ours the others are.
    fn ratios(&self) -> [f64; 2] {
        self.others.map(|other| other / self.ours)
    }
}

/// All figures of one run.
pub(crate) struct Report {
    name: &'static str,
    n_expressions: usize,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(name: &'static str, n_expressions: usize) -> Report {
        Report { name, n_expressions, rows: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Something that a reader of the table must not overlook.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(crate) fn print(&self) {
        let [ours, one, other] = CONTENDERS;
        println!("{}: {} expressions, {}", self.name, self.n_expressions, machine());
        println!("{:<36} {:>4} {ours:>12} {one:>12} {:>8} {other:>12} {:>8}", "", "unit", "ratio", "ratio");
        for row in &self.rows {
            let [one, other] = row.others.map(shown);
            let [one_ratio, other_ratio] = row.ratios();
            println!(
                "{:<36} {:>4} {:>12} {one:>12} {one_ratio:>8.2} {other:>12} {other_ratio:>8.2}",
                row.what,
                row.unit,
                shown(row.ours)
            );
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
        let mut json = format!(
            "{{\n  \"bench\": \"{}\",\n  \"n_expressions\": {},\n  {},\n  \"rows\": [",
            self.name,
            self.n_expressions,
            machine_json()
        );
        let [ours, one, other] = CONTENDERS;
        for (row_idx, row) in self.rows.iter().enumerate() {
            let separator = if row_idx == 0 { "" } else { "," };
            let [one_value, other_value] = row.others.map(shown);
            // Names and units are words of this file: there is nothing to escape.
            let _ = write!(
                json,
                "{separator}\n    {{\"what\": \"{}\", \"unit\": \"{}\", \"{ours}\": {}, \"{one}\": {one_value}, \"{other}\": {other_value}}}",
                row.what,
                row.unit,
                shown(row.ours)
            );
        }
        json.push_str("\n  ]\n}\n");
        json
    }
}

/// Whole numbers as such, others with two digits.
fn shown(figure: f64) -> String {
    let digits = if figure.fract() == 0.0 { 0 } else { 2 };
    format!("{figure:.digits$}")
}
