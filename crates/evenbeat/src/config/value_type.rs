//! The types of configuration values, and the errors for anything else.

use std::net::SocketAddr;

use evenbeat_core::ids::NodeName;
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::slot::SlotWidth;
use evenbeat_core::spec::SpecError;
use evenbeat_core::time::Duration;
use evenbeat_core::value::Value;

use super::network::{Network, NotANetwork};
use super::size::ByteSize;
use super::store_address::{StoreAddress, StoreAddressError};

/// How an unset value is written.
pub(super) const NONE: &str = "none";

/// Longest list we accept.
const LIST_MAX: usize = 1_000;

/// The type of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueType {
    Text,
    Path,
    Store,
    Address,
    NodeName,
    Truth,
    Count {
        min: u32,
        max: u32,
    },
    /// A share from 0 to 1.
    Share,
    Length {
        min: Duration,
        max: Duration,
    },
    /// A size of at least this many bytes.
    Size {
        min: u64,
    },
    SlotMinutes,
    Word(&'static [&'static str]),
    Paths,
    /// An address of a web server. It may hold a secret, so only its host is shown.
    Url,
    /// A list of strings.
    Texts,
    /// Names of environment variables.
    VariableNames,
    /// Host names or addresses, as they stand in a URL.
    HostNames,
    Networks,
    /// A value of this type, or `"none"`.
    Optional(&'static ValueType),
}

/// A valid value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Setting {
    Nothing,
    Text(String),
    Store(StoreAddress),
    Address(SocketAddr),
    NodeName(NodeName),
    Truth(bool),
    Count(u32),
    Share(f64),
    Length(Duration),
    Size(ByteSize),
    Slot(SlotWidth),
    Word(&'static str),
    Url(String),
    Texts(Vec<String>),
}

/// Why a value is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueError {
    pub(super) message: String,
    pub(super) label: Option<String>,
    pub(super) help: Option<String>,
}

impl ValueError {
    pub(super) fn new(message: impl Into<String>, label: &str, help: Option<String>) -> ValueError {
        ValueError { message: message.into(), label: Some(label.to_owned()), help }
    }
}

/// Uses the same words as for job files.
impl From<SpecError> for ValueError {
    fn from(error: SpecError) -> ValueError {
        let label = error.label().map(str::to_owned);
        ValueError { message: error.to_string(), label, help: error.hint() }
    }
}

impl ValueType {
    /// Reads a value. `field` is the key as shown in errors.
    pub(super) fn read(self, field: &str, value: &Value) -> Result<Setting, ValueError> {
        match self {
            ValueType::Optional(_) if value.as_text() == Some(NONE) => Ok(Setting::Nothing),
            ValueType::Optional(inner) => inner.read(field, value),
            ValueType::Text => Ok(Setting::Text(text(field, "a string", value)?.to_owned())),
            ValueType::Path => Ok(Setting::Text(path(field, value)?)),
            ValueType::Store => store(field, value),
            ValueType::Address => address(field, value),
            ValueType::NodeName => {
                let name = text(field, "a name", value)?.parse::<NodeName>();
                Ok(Setting::NodeName(name.map_err(SpecError::from)?))
            }
            ValueType::Truth => match value {
                Value::Bool(truth) => Ok(Setting::Truth(*truth)),
                _ => Err(wrong_kind(field, "`true` or `false`", value)),
            },
            ValueType::Count { min, max } => Ok(Setting::Count(count(field, value, min, max)?)),
            ValueType::Share => share(field, value),
            ValueType::Length { min, max } => length(field, value, min, max),
            ValueType::Size { min } => size(field, value, min),
            ValueType::SlotMinutes => {
                let minutes = count(field, value, 1, 60)?;
                SlotWidth::from_mins(u16::try_from(minutes).unwrap_or(u16::MAX))
                    .map(Setting::Slot)
                    .map_err(|error| ValueError::new(error.to_string(), "does not divide an hour", None))
            }
            ValueType::Word(words) => word(field, value, words),
            ValueType::Url => url(field, value),
            ValueType::Paths => Ok(Setting::Texts(list(field, value, path)?)),
            ValueType::Texts => Ok(Setting::Texts(list(field, value, |field, value| {
                text(field, "a string", value).map(str::to_owned)
            })?)),
            ValueType::VariableNames => Ok(Setting::Texts(list(field, value, variable_name)?)),
            ValueType::HostNames => Ok(Setting::Texts(list(field, value, host_name)?)),
            ValueType::Networks => Ok(Setting::Texts(list(field, value, network)?)),
        }
    }

    /// Converts a plain text to this type. Variables and flags have no quotes that tell a number from a string.
    pub(super) fn value_of(self, text: &str) -> Value {
        let as_text = || Value::Text(text.to_owned());
        match self {
            ValueType::Optional(_) if text == NONE => as_text(),
            ValueType::Optional(inner) => inner.value_of(text),
            ValueType::Truth => text.parse().map_or_else(|_| as_text(), Value::Bool),
            ValueType::Count { .. } | ValueType::SlotMinutes => {
                text.parse().map_or_else(|_| as_text(), Value::Int)
            }
            ValueType::Share => text.parse().map_or_else(|_| as_text(), Value::Float),
            _ if self.is_list() => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Value::List(parts.map(Value::from).collect())
            }
            _ => as_text(),
        }
    }

    pub(super) fn is_list(self) -> bool {
        matches!(
            self,
            ValueType::Paths
                | ValueType::Texts
                | ValueType::VariableNames
                | ValueType::HostNames
                | ValueType::Networks
        )
    }

    /// The type as shown in the reference.
    pub(super) fn describe(self) -> String {
        match self {
            ValueType::Text => "text".to_owned(),
            ValueType::Path => "path".to_owned(),
            ValueType::Store => "`sqlite:PATH` or `postgres://…`".to_owned(),
            ValueType::Address => "address and port".to_owned(),
            ValueType::NodeName => "name".to_owned(),
            ValueType::Truth => "`true` or `false`".to_owned(),
            ValueType::Count { min, max: u32::MAX } => format!("whole number, at least {min}"),
            ValueType::Count { min, max } => format!("whole number, {min} to {max}"),
            ValueType::Share => "number, 0 to 1".to_owned(),
            ValueType::Length { min, max } => match (min == SHORTEST, max == Duration::LONGEST) {
                (true, true) => "duration".to_owned(),
                (false, true) => format!("duration, at least {min}"),
                (true, false) => format!("duration, at most {max}"),
                (false, false) => format!("duration, {min} to {max}"),
            },
            ValueType::Size { min } => format!("size, at least {}", ByteSize(min)),
            ValueType::SlotMinutes => "whole number that divides 60".to_owned(),
            ValueType::Word(words) => {
                words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
            }
            ValueType::Url => "URL".to_owned(),
            ValueType::Texts => "list of strings".to_owned(),
            ValueType::Paths => "list of paths".to_owned(),
            ValueType::VariableNames => "list of variable names".to_owned(),
            ValueType::HostNames => "list of host names".to_owned(),
            ValueType::Networks => "list of addresses or networks".to_owned(),
            ValueType::Optional(inner) => format!("{}, or `\"{NONE}\"`", inner.describe()),
        }
    }
}

/// The shortest possible duration.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);

impl Setting {
    /// The value as written in a file, without the secrets of a store.
    pub(super) fn value(&self) -> Value {
        match self {
            Setting::Nothing => Value::from(NONE),
            Setting::Text(text) => Value::from(text.as_str()),
            Setting::Word(text) => Value::from(*text),
            Setting::Url(url) => Value::Text(shown_url(url).0),
            Setting::Store(place) => Value::Text(shown_store(place).0),
            Setting::Address(address) => Value::Text(address.to_string()),
            Setting::NodeName(name) => Value::from(name.as_str()),
            Setting::Truth(truth) => Value::Bool(*truth),
            Setting::Count(number) => Value::Int(i64::from(*number)),
            Setting::Share(number) => Value::Float(*number),
            Setting::Length(length) => Value::Text(length.to_string()),
            Setting::Size(size) => Value::Text(size.to_string()),
            Setting::Slot(width) => Value::Int(i64::from(width.as_mins())),
            Setting::Texts(texts) => {
                Value::List(texts.iter().map(|text| Value::from(text.as_str())).collect())
            }
        }
    }

    /// Whether the shown value hides something.
    pub(super) fn is_hidden(&self) -> bool {
        match self {
            Setting::Store(place) => shown_store(place).1,
            Setting::Url(url) => shown_url(url).1,
            _ => false,
        }
    }
}

/// A URL without what may be a secret, which is all but its host, and whether something was hidden.
fn shown_url(url: &str) -> (String, bool) {
    let Some((scheme, rest)) = url.split_once("://") else { return ("***".to_owned(), true) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host_only = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_hidden = host_only != host || !["", "/"].contains(&path);
    if is_hidden { (format!("{scheme}://{host_only}/***"), true) } else { (url.to_owned(), false) }
}

/// A store without secrets, and whether something was hidden.
fn shown_store(place: &StoreAddress) -> (String, bool) {
    let url = match place {
        StoreAddress::Postgres(url) => url,
        // Two slashes after the colon are not part of the path.
        StoreAddress::Sqlite(path) if path.to_string_lossy().starts_with("//") => {
            return (format!("sqlite://{}", path.display()), false);
        }
        StoreAddress::Sqlite(_) => return (place.to_string(), false),
    };
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
    // A password, or parameters that may contain one.
    let is_secret = user.contains([':', '%', '/']) || rest.contains('?');
    if is_secret { (place.to_string(), true) } else { (url.clone(), false) }
}

fn text<'a>(field: &str, expected: &'static str, value: &'a Value) -> Result<&'a str, ValueError> {
    let Some(text) = value.as_text() else { return Err(wrong_kind(field, expected, value)) };
    if text.trim().is_empty() {
        let way_out = "write a value, or remove the key";
        return Err(SpecError::Empty { field: field.to_owned(), way_out }.into());
    }
    match text.chars().find(|it| it.is_control()) {
        Some(found) => {
            let field = field.to_owned();
            Err(SpecError::BadCharacter { field, what: "a configuration value", found }.into())
        }
        None => Ok(text),
    }
}

fn path(field: &str, value: &Value) -> Result<String, ValueError> {
    let text = text(field, "a path", value)?;
    if text == "~" || text.starts_with("~/") {
        let help = "`~` is not expanded here; write the full path".to_owned();
        return Err(ValueError::new(format!("`{field}` starts with `~`"), "not a path", Some(help)));
    }
    Ok(text.to_owned())
}

fn url(field: &str, value: &Value) -> Result<Setting, ValueError> {
    let written = text(field, "a URL", value)?;
    let host = written.strip_prefix("https://").or_else(|| written.strip_prefix("http://"));
    let is_host = host.is_some_and(|rest| !rest.starts_with(['/', ':', '?', '#']) && !rest.is_empty());
    if is_host && !written.contains(char::is_whitespace) {
        return Ok(Setting::Url(written.to_owned()));
    }
    // The text may be a secret with a typo.
    let help = Some("write `https://host/path`".to_owned());
    Err(ValueError::new(format!("`{field}` is not a URL of a web server"), "not a URL", help))
}

fn variable_name(field: &str, value: &Value) -> Result<String, ValueError> {
    let name = text(field, "the name of a variable", value)?;
    if name.contains(['=', ' ']) {
        let message = format!("`{}` is not the name of a variable", shortened(name));
        let help = "write only the name; the value comes from the node's environment".to_owned();
        return Err(ValueError::new(message, "not a name", Some(help)));
    }
    Ok(name.to_owned())
}

fn host_name(field: &str, value: &Value) -> Result<String, ValueError> {
    let name = text(field, "a host name", value)?;
    let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric() || b"-.:[]_".contains(&it));
    if !is_name {
        let message = format!("`{}` is not a host name", shortened(name));
        let help =
            "write only the name, such as `evenbeat.example.com`, without `https://` and path".to_owned();
        return Err(ValueError::new(message, "not a host name", Some(help)));
    }
    Ok(name.to_owned())
}

fn network(field: &str, value: &Value) -> Result<String, ValueError> {
    let written = text(field, "a network", value)?;
    match written.parse::<Network>() {
        Ok(_) => Ok(written.to_owned()),
        Err(NotANetwork) => {
            let message = format!("`{}` is not an address or a network", shortened(written));
            let help = "write an IP address, or a network such as `10.0.0.0/8`".to_owned();
            Err(ValueError::new(message, "not a network", Some(help)))
        }
    }
}

fn store(field: &str, value: &Value) -> Result<Setting, ValueError> {
    let place = text(field, "a store", value)?.parse::<StoreAddress>();
    place.map(Setting::Store).map_err(|error| {
        let error = match error {
            StoreAddressError::Unknown(shown) => StoreAddressError::Unknown(shortened(&shown)),
            StoreAddressError::NoPath => StoreAddressError::NoPath,
        };
        ValueError::new(error.to_string(), "not a store", None)
    })
}

fn address(field: &str, value: &Value) -> Result<Setting, ValueError> {
    let written = text(field, "an address and port", value)?;
    written.parse().map(Setting::Address).map_err(|_| {
        let port = written.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(8060);
        let help = match written.rsplit_once(':').map_or(written, |(host, _)| host) {
            "*" | "0" => format!("to listen on all interfaces, write `0.0.0.0:{port}`"),
            _ => format!("write an IP address and a port, such as `127.0.0.1:{port}` or `[::1]:{port}`"),
        };
        let message = format!("`{}` is not an address and a port", shortened(written));
        ValueError::new(message, "not an address", Some(help))
    })
}

fn count(field: &str, value: &Value, min: u32, max: u32) -> Result<u32, ValueError> {
    let Value::Int(number) = value else { return Err(wrong_kind(field, "a whole number", value)) };
    if let Ok(number) = u32::try_from(*number)
        && (min..=max).contains(&number)
    {
        return Ok(number);
    }
    let limits = if max == u32::MAX && *number < i64::from(min) {
        format!("at least {min}")
    } else {
        format!("from {min} to {max}")
    };
    Err(out_of_range(field, number.to_string(), limits))
}

fn share(field: &str, value: &Value) -> Result<Setting, ValueError> {
    let number = match value {
        Value::Float(number) => *number,
        Value::Int(0) => 0.0,
        Value::Int(1) => 1.0,
        Value::Int(number) => return Err(out_of_range(field, number.to_string(), "from 0 to 1".to_owned())),
        _ => return Err(wrong_kind(field, "a number from 0 to 1", value)),
    };
    // `contains` also rejects NaN.
    if (0.0..=1.0).contains(&number) {
        return Ok(Setting::Share(number));
    }
    Err(out_of_range(field, number.to_string(), "from 0 to 1".to_owned()))
}

fn length(field: &str, value: &Value, min: Duration, max: Duration) -> Result<Setting, ValueError> {
    let Value::Text(text) = value else { return Err(wrong_kind(field, "a duration", value)) };
    let length: Duration = text.parse().map_err(SpecError::from)?;
    if min <= length && length <= max {
        return Ok(Setting::Length(length));
    }
    let limits = if length < min { format!("at least {min}") } else { format!("at most {max}") };
    Err(out_of_range(field, length.to_string(), limits))
}

fn size(field: &str, value: &Value, min: u64) -> Result<Setting, ValueError> {
    let size = match value {
        Value::Text(text) => text
            .parse::<ByteSize>()
            .map_err(|error| ValueError::new(error.to_string(), "not a size", None))?,
        Value::Int(number) => match u64::try_from(*number) {
            Ok(bytes) => ByteSize(bytes),
            Err(_) => {
                return Err(out_of_range(field, number.to_string(), format!("at least {}", ByteSize(min))));
            }
        },
        _ => return Err(wrong_kind(field, "a size", value)),
    };
    if size.0 < min {
        return Err(out_of_range(field, size.to_string(), format!("at least {}", ByteSize(min))));
    }
    Ok(Setting::Size(size))
}

fn word(field: &str, value: &Value, words: &'static [&'static str]) -> Result<Setting, ValueError> {
    let written = text(field, "a string", value)?;
    if let Some(word) = words.iter().find(|word| **word == written) {
        return Ok(Setting::Word(word));
    }
    let nearest = nearest(written, words.iter().copied());
    let (field, text, choices) = (field.to_owned(), shortened(written), words.to_vec());
    Err(SpecError::UnknownWord { field, text, choices, nearest }.into())
}

fn list(
    field: &str,
    value: &Value,
    read: impl Fn(&str, &Value) -> Result<String, ValueError>,
) -> Result<Vec<String>, ValueError> {
    let Value::List(values) = value else { return Err(wrong_kind(field, "a list of strings", value)) };
    if LIST_MAX < values.len() {
        let (field, n_found) = (field.to_owned(), values.len());
        return Err(SpecError::TooMany { field, n_found, n_most: LIST_MAX }.into());
    }
    values.iter().enumerate().map(|(idx, value)| read(&format!("{field}[{idx}]"), value)).collect()
}

fn out_of_range(field: &str, found: String, limits: String) -> ValueError {
    SpecError::OutOfRange { field: field.to_owned(), found, limits }.into()
}

pub(super) fn wrong_kind(field: &str, expected: &'static str, value: &Value) -> ValueError {
    let found = match value {
        Value::Int(number) => format!("the number `{number}`"),
        Value::Float(number) => format!("the number `{number}`"),
        Value::Bool(truth) => format!("`{truth}`"),
        Value::Text(text) => format!("the string `{}`", shortened(text)),
        other => other.kind().to_owned(),
    };
    let way_out = match (expected, value) {
        ("a duration", Value::Int(number)) => Some(format!("write `\"{number}s\"` or `\"{number}m\"`")),
        ("a list of strings", Value::Text(text)) if text.len() <= 60 => Some(format!("write `[{text:?}]`")),
        ("a whole number", Value::Text(text)) if text.trim().parse::<i64>().is_ok() => {
            Some(format!("write `{}` without quotes", text.trim()))
        }
        ("`true` or `false`", Value::Text(text)) if ["true", "false"].contains(&text.as_str()) => {
            Some(format!("write `{text}` without quotes"))
        }
        ("`true` or `false`", Value::Text(text)) if ["yes", "on", "1"].contains(&text.as_str()) => {
            Some("write `true`".to_owned())
        }
        ("`true` or `false`", Value::Text(text)) if ["no", "off", "0"].contains(&text.as_str()) => {
            Some("write `false`".to_owned())
        }
        _ => None,
    };
    SpecError::WrongKind { field: field.to_owned(), expected, found, way_out }.into()
}
