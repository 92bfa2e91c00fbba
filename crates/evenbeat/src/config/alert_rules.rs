//! Reads channels and routes, and checks that together they reach someone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenbeat_core::alert::{AlertEvent, AlertRoute, AlertRules, Cause, KeyPattern, Severity};
use evenbeat_core::condition::Reason;
use evenbeat_core::ids::Channel;
use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::time::Duration;

use super::alerts::{
    AlertSettings, ChannelKind, ChannelSettings, EmailSettings, EmailTls, HttpSettings, SecretSource,
};
use super::error::Location;
use super::path::ConfigPath;
use super::resolve::Resolution;
use super::value_type::{Setting, ValueError};

const CHANNELS: &str = "alerts.channels";
const ROUTES: &str = "alerts.routes";

/// What a job writes if it wants no alerts, so that no channel can have this name.
const NO_ALERTS: &str = "none";

/// A kind of channel, the keys it has besides those that all have, and the groups of keys of which one is required.
type ChannelKeys = (&'static str, &'static [&'static str], &'static [&'static [&'static str]]);

const OF_KIND: [ChannelKeys; 4] = [
    (
        "email",
        &["to", "from", "smtp", "tls", "user", "password_file", "password_env"],
        &[&["to"], &["from"], &["smtp"]],
    ),
    ("webhook", &["url", "url_file", "secret_file"], &[&["url", "url_file"]]),
    ("slack", &["url", "url_file"], &[&["url", "url_file"]]),
    ("command", &["command", "env_pass"], &[&["command"]]),
];

/// The pattern of a key of a channel, as the table of keys has it.
fn of_channel(leaf: &str) -> &'static str {
    let path = format!("{CHANNELS}.<name>.{leaf}");
    super::table::find(&path).map_or("alerts.channels.<name>.kind", |key| key.path)
}

pub(super) fn check(resolved: &mut Resolution) {
    if resolved.is_lost("alerts") || resolved.is_lost(CHANNELS) || resolved.is_lost(ROUTES) {
        return;
    }
    let channels = resolved.names(CHANNELS);
    for name in &channels {
        channel(resolved, name);
    }
    for name in resolved.names(ROUTES) {
        route(resolved, &name, &channels);
    }
    default_route(resolved, &channels);
}

fn channel(resolved: &mut Resolution, name: &str) {
    let kind_path = ConfigPath::named(of_channel("kind"), name);
    if name == NO_ALERTS {
        let message = format!("a channel cannot be called `{NO_ALERTS}`, which in a job means no alerts");
        let location = entry(resolved, CHANNELS, name);
        resolved.report(location, &kind_path, ValueError::new(message, "choose another name", None));
        return;
    }
    let Some(Setting::Word(kind)) = resolved.get(&kind_path).cloned() else { return };
    let Some((_, own, required)) = OF_KIND.iter().find(|(it, ..)| *it == kind) else { return };
    for (other, keys, _) in OF_KIND {
        for leaf in keys.iter().filter(|leaf| !own.contains(leaf)) {
            let path = ConfigPath::named(of_channel(leaf), name);
            if resolved.is_set(&path) && !resolved.is_any_broken(std::slice::from_ref(&path)) {
                let message = format!("`{path}` works only with `kind = \"{other}\"`, but this is `{kind}`");
                let location = resolved.location(&path);
                let help = Some("remove it, or change `kind`".to_owned());
                resolved.report(location, &path, ValueError::new(message, "without effect here", help));
            }
        }
    }
    for group in *required {
        let paths: Vec<ConfigPath> =
            group.iter().map(|leaf| ConfigPath::named(of_channel(leaf), name)).collect();
        let is_given = paths.iter().filter(|path| !is_empty(resolved.get(path))).count();
        if is_given == 0 && !resolved.is_any_broken(&paths) {
            let keys: Vec<String> = group.iter().map(|leaf| format!("`{leaf}`")).collect();
            let message = format!("channel `{name}` has no {}", keys.join(" or "));
            let help = Some(format!("a channel of kind `{kind}` needs it"));
            let location = entry(resolved, CHANNELS, name);
            resolved.report(location, &kind_path, ValueError::new(message, "incomplete", help));
        }
        if 1 < is_given
            && let Some(path) = paths.get(1)
        {
            let message = format!("channel `{name}` has both `{}` and `{}`", group[0], path.leaf());
            let location = resolved.location(path);
            resolved.report(
                location,
                path,
                ValueError::new(message, "one too many", Some("keep one".to_owned())),
            );
        }
    }
    if kind == "email" {
        email(resolved, name);
    }
}

fn email(resolved: &mut Resolution, name: &str) {
    let path = |leaf| ConfigPath::named(of_channel(leaf), name);
    let mailbox = |text: &str| {
        let read = text.parse::<lettre::message::Mailbox>();
        read.map(drop).map_err(|_| format!("`{}` is not a mail address", shortened(text)))
    };
    each(resolved, &path("to"), mailbox);
    each(resolved, &path("from"), mailbox);
    each(resolved, &path("smtp"), |text| host_and_port(text).map(drop));
    let is_local = text_of(resolved, &path("smtp"))
        .and_then(|it| host_and_port(&it).ok())
        .is_some_and(|(host, _)| ["127.0.0.1", "::1", "localhost"].contains(&host.as_str()));
    if resolved.get(&path("tls")) == Some(&Setting::Word("none")) && !is_local {
        let message = "mail to another machine must be encrypted";
        let help = Some("use `tls = \"starttls\"` or `\"implicit\"`".to_owned());
        let location = resolved.location(&path("tls"));
        resolved.report(location, &path("tls"), ValueError::new(message, "in the clear", help));
    }
    let has_password = ["password_file", "password_env"].map(|leaf| !is_empty(resolved.get(&path(leaf))));
    let has_user = !is_empty(resolved.get(&path("user")));
    if has_password.contains(&true) != has_user || has_password == [true, true] {
        let message =
            format!("channel `{name}` needs `user` and one of `password_file`, `password_env`, or none");
        let location = entry(resolved, CHANNELS, name);
        resolved.report(location, &path("user"), ValueError::new(message, "incomplete", None));
    }
}

fn route(resolved: &mut Resolution, name: &str, channels: &[String]) {
    let path = |pattern| ConfigPath::named(pattern, name);
    let to = path("alerts.routes.<name>.channels");
    if is_empty(resolved.get(&to)) && !resolved.is_any_broken(std::slice::from_ref(&to)) {
        let message = format!("route `{name}` has no `channels`");
        let help =
            Some("name at least one channel; a job without alerts writes `alerts = \"none\"`".to_owned());
        let location = entry(resolved, ROUTES, name);
        resolved.report(location, &to, ValueError::new(message, "incomplete", help));
    }
    each(resolved, &to, |text| known_channel(text, channels));
    each(resolved, &path("alerts.routes.<name>.jobs"), |text| KeyPattern::parse(text).map(drop));
    each(resolved, &path("alerts.routes.<name>.labels"), |text| label(text).map(drop));
    let named = |text: &str| text.parse::<Channel>().map(drop).map_err(|error| error.to_string());
    for pattern in
        ["alerts.routes.<name>.sites", "alerts.routes.<name>.tenants", "alerts.routes.<name>.pools"]
    {
        each(resolved, &path(pattern), |text| named(text).map_err(|error| error.replace("channel", "name")));
    }
    each(resolved, &path("alerts.routes.<name>.conditions"), |text| match Severity::named(text) {
        Some(_) => Ok(()),
        None => Err(format!("`{}` is not `warning` or `error`", shortened(text))),
    });
    each(resolved, &path("alerts.routes.<name>.reasons"), |text| {
        let codes: Vec<&str> = reasons().collect();
        if codes.contains(&text) {
            return Ok(());
        }
        let near = nearest(text, codes.iter().copied());
        let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        Err(format!("`{}` is not a reason that alerts{near}", shortened(text)))
    });
}

/// Every code that a route can name.
fn reasons() -> impl Iterator<Item = &'static str> {
    let bad = Reason::ALL.into_iter().filter(|it| Severity::of(*it).is_some()).map(Reason::as_str);
    let system = [Cause::ScoreLow, Cause::SchedulerAway].map(Cause::as_str);
    bad.chain(system).chain(AlertEvent::ALL.map(AlertEvent::as_str))
}

fn default_route(resolved: &mut Resolution, channels: &[String]) {
    let path = ConfigPath::plain("alerts.default");
    if !channels.is_empty()
        && is_empty(resolved.get(&path))
        && !resolved.is_any_broken(std::slice::from_ref(&path))
    {
        let message = "there are alert channels, but no `alerts.default`";
        let first = channels.first().cloned().unwrap_or_default();
        let help = format!("set `alerts.default = [\"{first}\"]`, so that no job is without a route");
        let location = entry(resolved, CHANNELS, &first);
        resolved.report(location, &path, ValueError::new(message, "no default route", Some(help)));
    }
    each(resolved, &path, |text| known_channel(text, channels));
}

/// Checks each text of a key, and reports the first that is wrong.
fn each(resolved: &mut Resolution, path: &ConfigPath, check: impl Fn(&str) -> Result<(), String>) {
    if resolved.is_any_broken(std::slice::from_ref(path)) {
        return;
    }
    let texts = match resolved.get(path) {
        Some(Setting::Texts(texts)) => texts.clone(),
        Some(Setting::Text(text)) => vec![text.clone()],
        _ => return,
    };
    if let Some(message) = texts.iter().find_map(|text| check(text).err()) {
        let location = resolved.location(path);
        resolved.report(location, path, ValueError::new(message, "not valid", None));
    }
}

fn known_channel(text: &str, channels: &[String]) -> Result<(), String> {
    if channels.iter().any(|it| it == text) {
        return Ok(());
    }
    let near = nearest(text, channels.iter().map(String::as_str));
    let near = near.map(|it| format!("did you mean `{it}`?"));
    let help = near.unwrap_or_else(|| format!("add it with `[alerts.channels.{}]`", shortened(text)));
    Err(format!("there is no channel `{}`; {help}", shortened(text)))
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{}` is not a label; write `name=value`", shortened(text))),
    }
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("`{}` is not `host:port`, such as `mail.example:587`", shortened(text));
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|port| 0 < *port).ok_or_else(wrong)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = |it: char| it.is_ascii_alphanumeric() || ['.', '-', ':'].contains(&it);
    if host.is_empty() || !host.chars().all(is_host) { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

fn is_empty(setting: Option<&Setting>) -> bool {
    match setting {
        None | Some(Setting::Nothing) => true,
        Some(Setting::Texts(texts)) => texts.is_empty(),
        Some(_) => false,
    }
}

fn entry(resolved: &Resolution, table: &str, name: &str) -> Location {
    let found = resolved.collected.entries.iter().find(|(in_table, it, _)| *in_table == table && it == name);
    found.map_or(Location::Machine, |(.., location)| location.clone())
}

fn text_of(resolved: &Resolution, path: &ConfigPath) -> Option<String> {
    match resolved.get(path) {
        Some(Setting::Text(text) | Setting::Url(text)) => Some(text.clone()),
        _ => None,
    }
}

/// The settings of keys that were checked.
pub(super) fn settings(resolved: &Resolution) -> AlertSettings {
    let get = Get(resolved);
    let plain = |key| ConfigPath::plain(key);
    let names = |key| get.parsed(&plain(key));
    let mut channels = BTreeMap::new();
    let mut per_hour = BTreeMap::new();
    for name in resolved.names(CHANNELS) {
        let Ok(channel) = name.parse::<Channel>() else { continue };
        per_hour.insert(channel.clone(), get.count(&ConfigPath::named(of_channel("per_hour"), &name)));
        channels.insert(channel, get.channel(&name));
    }
    AlertSettings {
        rules: AlertRules {
            default: names("alerts.default"),
            routes: resolved.names(ROUTES).iter().map(|name| get.route(name)).collect(),
            channels: per_hour,
            group_wait: get.length(&plain("alerts.group_wait")).unwrap_or_default(),
            remind_every: get.length(&plain("alerts.remind_every")),
            after_failures: get.count(&plain("alerts.after_failures")),
            recover_after: get.count(&plain("alerts.recover_after")),
            away_after: get.length(&plain("alerts.away_after")).unwrap_or_default(),
            catch_up_for: get.length(&plain("alerts.catch_up_for")).unwrap_or_default(),
        },
        channels,
        score_below: match resolved.plain("alerts.score_below") {
            Some(Setting::Share(share)) => *share,
            _ => 0.0,
        },
        public_url: text_of(resolved, &plain("public_url")),
        heartbeat: text_of(resolved, &plain("alerts.heartbeat_url")).map(SecretSource::Inline),
        heartbeat_every: get.length(&plain("alerts.heartbeat_every")).unwrap_or_default(),
        retry_for: get.length(&plain("alerts.retry_for")).unwrap_or_default(),
        keep_for: get.length(&plain("retention.alerts")).unwrap_or_default(),
        http: HttpSettings {
            allow_private: get.parsed(&plain("http.allow_private")),
            allow_metadata: resolved.plain("http.allow_metadata") == Some(&Setting::Truth(true)),
        },
    }
}

/// Reads values that were checked.
struct Get<'a>(&'a Resolution);

impl Get<'_> {
    fn texts(&self, path: &ConfigPath) -> Vec<String> {
        match self.0.get(path) {
            Some(Setting::Texts(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn parsed<T: std::str::FromStr>(&self, path: &ConfigPath) -> Vec<T> {
        self.texts(path).iter().filter_map(|it| it.parse().ok()).collect()
    }

    fn count(&self, path: &ConfigPath) -> u32 {
        match self.0.get(path) {
            Some(Setting::Count(count)) => *count,
            _ => 1,
        }
    }

    fn length(&self, path: &ConfigPath) -> Option<Duration> {
        match self.0.get(path) {
            Some(Setting::Length(length)) => Some(*length),
            _ => None,
        }
    }

    fn channel(&self, name: &str) -> ChannelSettings {
        let path = |leaf| ConfigPath::named(of_channel(leaf), name);
        let text = |leaf| text_of(self.0, &path(leaf));
        let file = |leaf| text(leaf).map(|it| SecretSource::File(PathBuf::from(it)));
        let url = || {
            let inline = text("url").map(SecretSource::Inline);
            inline.or_else(|| file("url_file")).unwrap_or(SecretSource::Inline(String::new()))
        };
        let kind = match self.0.get(&path("kind")) {
            Some(Setting::Word("webhook")) => {
                ChannelKind::Webhook { url: url(), secret: file("secret_file") }
            }
            Some(Setting::Word("slack")) => ChannelKind::Slack { url: url() },
            Some(Setting::Word("command")) => ChannelKind::Command {
                argv: self.texts(&path("command")),
                env_pass: self.texts(&path("env_pass")),
            },
            _ => {
                let server = text("smtp").and_then(|it| host_and_port(&it).ok()).unwrap_or_default();
                ChannelKind::Email(Box::new(EmailSettings {
                    to: self.texts(&path("to")),
                    from: text("from").unwrap_or_default(),
                    host: server.0,
                    port: server.1,
                    tls: match self.0.get(&path("tls")) {
                        Some(Setting::Word("implicit")) => EmailTls::Implicit,
                        Some(Setting::Word("none")) => EmailTls::None,
                        _ => EmailTls::Starttls,
                    },
                    user: text("user"),
                    password: file("password_file")
                        .or_else(|| text("password_env").map(SecretSource::Variable)),
                }))
            }
        };
        let time_limit = self.length(&path("time_limit")).unwrap_or_default();
        ChannelSettings { kind, time_limit }
    }

    fn route(&self, name: &str) -> AlertRoute {
        let path = |pattern| ConfigPath::named(pattern, name);
        let texts = |pattern| self.texts(&path(pattern));
        AlertRoute {
            jobs: texts("alerts.routes.<name>.jobs")
                .iter()
                .filter_map(|it| KeyPattern::parse(it).ok())
                .collect(),
            labels: texts("alerts.routes.<name>.labels").iter().filter_map(|it| label(it).ok()).collect(),
            sites: self.parsed(&path("alerts.routes.<name>.sites")),
            tenants: self.parsed(&path("alerts.routes.<name>.tenants")),
            pools: self.parsed(&path("alerts.routes.<name>.pools")),
            conditions: texts("alerts.routes.<name>.conditions")
                .iter()
                .filter_map(|it| Severity::named(it))
                .collect(),
            reasons: texts("alerts.routes.<name>.reasons"),
            channels: self.parsed(&path("alerts.routes.<name>.channels")),
        }
    }
}
