//! Named schedules that other tools use, accepted wherever a schedule is (J3).

use std::str::FromStr;

use crate::time::Duration;

/// A schedule by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Only when triggered.
    Manual,
    /// An interval, not a clock time.
    Every(Duration),
    /// A cron expression, to be given beside it.
    CustomCron,
}

const PRESETS: [(&str, Preset); 7] = [
    ("manual", Preset::Manual),
    ("every_5_min", Preset::Every(Duration::from_mins(5))),
    ("every_15_min", Preset::Every(Duration::from_mins(15))),
    ("hourly", Preset::Every(Duration::from_hours(1))),
    ("every_6_hours", Preset::Every(Duration::from_hours(6))),
    ("daily", Preset::Every(Duration::from_hours(24))),
    ("custom_cron", Preset::CustomCron),
];

impl Preset {
    /// The names, in the order in which they are documented.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }
}

/// The text is not the name of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPreset;

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Preset, UnknownPreset> {
        PRESETS.iter().find(|(name, _)| *name == text).map(|(_, preset)| *preset).ok_or(UnknownPreset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_intervals_not_clock_times() {
        let shown: Vec<String> = Preset::names()
            .map(|name| match name.parse::<Preset>().unwrap() {
                Preset::Every(interval) => format!("{name} = every {interval}"),
                other => format!("{name} = {other:?}"),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "manual = Manual",
                "every_5_min = every 5m",
                "every_15_min = every 15m",
                "hourly = every 1h",
                "every_6_hours = every 6h",
                "daily = every 1d",
                "custom_cron = CustomCron",
            ]
        );
        assert_eq!("weekly".parse::<Preset>(), Err(UnknownPreset));
    }
}
