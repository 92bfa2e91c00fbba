//! The definition of a job as the text of a job file.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use super::model::JobDefinition;

/// A job as in a job file, with the name first.
pub(crate) fn job_file(JobDefinition(fields): &JobDefinition) -> Result<String, toml::ser::Error> {
    let mut fields = fields.clone();
    let mut text = "[[job]]\n".to_owned();
    for name in ["name", "configuration"] {
        if let Some(Json::String(value)) = fields.remove(name) {
            let _ = writeln!(text, "{name} = {}", toml::Value::String(value));
        }
    }
    text.push_str(&job_fields(fields)?);
    Ok(text)
}

/// Some fields of a job, as they stand below its `[[job]]`.
pub(crate) fn job_fields(fields: Map<String, Json>) -> Result<String, toml::ser::Error> {
    let rest = toml::Value::try_from(Json::Object(fields))?;
    // A table inside a job needs a header such as `[job.retry]`.
    let document = toml::Table::from_iter([("job".to_owned(), toml::Value::Array(vec![rest]))]);
    let document = toml::to_string(&document)?;
    Ok(document.strip_prefix("[[job]]\n").unwrap_or(&document).to_owned())
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zones;

    use super::*;
    use crate::jobfile::{SourceText, load};

    #[test]
    fn a_job_that_was_written_is_read_back() {
        let definition = serde_json::json!({
            "name": "shop", "configuration": "test", "every": "6h", "cost": 2,
            "command": { "argv": ["crawl"], "env": { "A": "b" } },
            "retry": { "delays": ["5m", "1h"] }, "labels": { "team": "news" },
            "blackout_periods": [{ "start": "00:00", "end": "01:00", "days": ["mon"] }],
        });
        let Json::Object(fields) = definition else { panic!("an object") };
        let text = job_file(&JobDefinition(fields.clone())).unwrap();
        assert!(text.starts_with("[[job]]\nname = \"shop\"\nconfiguration = \"test\"\n"), "{text}");
        let source = SourceText { name: "exported".to_owned(), text: text.clone() };
        let now = "2026-02-04T10:00:00Z".parse().unwrap();
        let loaded = load(&[source], now, &mut Zones::new())
            .unwrap_or_else(|it| panic!("{}\n{text}", it.render(false)));
        assert_eq!(JobDefinition::of(&loaded.files[0].jobs[0].job), JobDefinition(fields));
    }
}
