//! Generates the tables of docs/reference/job-files.md from the table of fields.

use std::fmt::Write as _;

use evenbeat_core::spec::{
    ALERT_FIELDS, BLACKOUT_FIELDS, COMMAND_FIELDS, FieldDefault, FieldSpec, JOB_FIELDS, RETRY_FIELDS, Section,
};

const END: &str = "<!-- end of fields -->";

/// Where tables stand in the document, and what is in them.
const SECTIONS: [(&str, Section); 9] = [
    ("<!-- fields: name and command -->", Section::Identity),
    ("<!-- fields: command -->", Section::Command),
    ("<!-- fields: schedule -->", Section::Schedule),
    ("<!-- fields: blackout_periods -->", Section::Blackout),
    ("<!-- fields: limits -->", Section::Limits),
    ("<!-- fields: retry -->", Section::Retry),
    ("<!-- fields: alerts -->", Section::Alerts),
    ("<!-- fields: where -->", Section::Where),
    ("<!-- fields: other spellings -->", Section::Other),
];

/// The same document with its tables as the table of fields says. A table without its marks is a fault.
pub fn filled(document: &str) -> Result<String, String> {
    let mut text = document.to_owned();
    for (mark, section) in SECTIONS {
        let (before, after) = text.split_once(mark).ok_or_else(|| format!("`{mark}` is missing"))?;
        let (_, rest) = after.split_once(END).ok_or_else(|| format!("no `{END}` after `{mark}`"))?;
        text = format!("{before}{mark}\n{}{END}{rest}", rows(section));
    }
    Ok(text)
}

fn rows(section: Section) -> String {
    let inner: Vec<&FieldSpec> =
        COMMAND_FIELDS.iter().chain(&RETRY_FIELDS).chain(&BLACKOUT_FIELDS).chain(&ALERT_FIELDS).collect();
    let fields = JOB_FIELDS.iter().chain(inner).filter(|it| it.section == section);
    let mut text = "| Field | Values | Meaning | Default |\n|---|---|---|---|\n".to_owned();
    for field in fields.filter(|it| !it.is_computed()) {
        let default = match field.default {
            FieldDefault::None => String::new(),
            FieldDefault::Required => "required".to_owned(),
            FieldDefault::Value(value) => format!("`{value}`"),
            FieldDefault::Words(words) => words.to_owned(),
        };
        let example =
            if field.example.is_empty() { String::new() } else { format!(", such as `{}`", field.example) };
        let _ =
            writeln!(text, "| `{}` | {}{example} | {} | {default} |", field.name, field.kind, field.meaning);
    }
    if section == Section::Other {
        for field in &JOB_FIELDS {
            for alias in field.aliases {
                let _ = writeln!(text, "| `{alias}` | {} | the same as `{}` | |", field.kind, field.name);
            }
        }
    }
    text
}
