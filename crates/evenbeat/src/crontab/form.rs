//! Detects whether a crontab has a user before each command.

use super::entry::CrontabLine;

/// Users that are never programs. One of them before a command is enough to detect the system form.
const SURE_USERS: [&str; 4] = ["root", "www-data", "nobody", "daemon"];

/// Users that hint at the system form. Unlike `git`, `mail` and `mysql`, none of them is also a program that is often run
/// from cron.
pub const SYSTEM_USERS: [&str; 8] =
    ["root", "www-data", "nobody", "postgres", "daemon", "apache", "ubuntu", "deploy"];

/// What comes between schedule and command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrontabForm {
    /// Nothing: a user's own crontab.
    User,
    /// A user: `/etc/crontab`.
    System,
}

impl CrontabForm {
    /// Detects the form of a file.
    pub(super) fn of<'a>(lines: impl Iterator<Item = CrontabLine<'a>>) -> CrontabForm {
        let (mut any_known, mut all_fit) = (false, true);
        for line in lines {
            let CrontabLine::Entry { rest, .. } = line else { continue };
            let (user, command) = rest.first_word();
            let is_one_of = |users: &[&str]| users.contains(&user.text) && !command.text.is_empty();
            if is_one_of(&SURE_USERS) {
                return CrontabForm::System;
            }
            let is_known = is_one_of(&SYSTEM_USERS);
            any_known |= is_known;
            all_fit &= is_known || command.text.starts_with('/');
        }
        if any_known && all_fit { CrontabForm::System } else { CrontabForm::User }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::lines;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: CrontabForm) {
        assert_eq!(CrontabForm::of(lines(text).map(CrontabLine::of)), expected, "{text}");
    }

    #[test]
    fn a_file_with_users_has_the_system_form() {
        use CrontabForm::{System, User};
        check("", User);
        check("0 3 * * * root backup.sh", System);
        check("@daily root backup.sh", System);
        check("0 3 * * * root", User);
        check("0 3 * * * git gc", User);
        check("0 3 * * * backup.sh", User);
        check("0 3 * * * root a\n0 4 * * * b c", System);
        check("0 3 * * * munin if [ -x /m ]; then /m; fi\n0 4 * * * www-data php cron.php", System);
        check("0 3 * * * deploy a\n0 4 * * * b c", User);
        check("0 3 * * * deploy a\n0 4 * * * shop /srv/sync", System);
        check("0 3 * * * root a\n0 4 * * * shop /srv/shop/sync", System);
        // Every first word is followed by a path, so it may as well be an interpreter.
        check("0 3 * * * bash /srv/a.sh\n0 4 * * * python3 /srv/b.py", User);
    }
}
