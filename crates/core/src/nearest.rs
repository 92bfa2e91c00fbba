//! "Did you mean …": the known word that looks most like a mistyped one.

/// The known name within a third of its length in edits, the nearest first, then the earliest.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const WRITTEN_MAX: usize = 64;
    if written.chars().count() > WRITTEN_MAX {
        return None;
    }
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|name| (edits(&written, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Input as it may be shown in an error: a hostile kilobyte is cut short.
pub fn shortened(text: &str) -> String {
    const SHOWN_MAX: usize = 60;
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_MAX).chain(['…']).collect()
}

/// How many letters must be added, removed, replaced or swapped with their neighbour.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut two_back: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=to.len()).collect();
    let mut before: Option<char> = None;
    for (row, letter) in from.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let cost = |cells: &[usize], at: usize| cells.get(at).copied().unwrap_or(usize::MAX / 2);
            let replaced = cost(&previous, column) + usize::from(letter != *other);
            let removed = cost(&previous, column + 1) + 1;
            let added = cost(&current, column) + 1;
            let mut best = replaced.min(removed).min(added);
            let swapped = column > 0 && before == Some(*other) && to.get(column - 1) == Some(&letter);
            if swapped {
                best = best.min(cost(&two_back, column - 1) + 1);
            }
            current.push(best);
        }
        two_back = previous;
        previous = current;
        before = Some(letter);
    }
    previous.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["schedule", "cooldown", "labels", "cron"];
        assert_eq!(nearest("schdeule", known), Some("schedule"));
        assert_eq!(nearest("CoolDown", known), Some("cooldown"));
        assert_eq!(nearest("lable", known), Some("labels"));
        assert_eq!(nearest("cronn", known), Some("cron"));
        assert_eq!(nearest("telescope", known), None);
        assert_eq!(nearest(&"x".repeat(500), known), None);
    }
}
