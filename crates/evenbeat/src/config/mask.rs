//! Masks secrets, so that an error can show a line of the file.

/// Words in the names of keys that hold secrets.
const SECRET_WORDS: [&str; 4] = ["token", "secret", "passw", "credential"];

/// Replaces each byte of a possible secret with `*`, so that all positions stay the same.
pub fn masked(text: &str) -> String {
    text.split_inclusive('\n').map(masked_line).collect()
}

/// Whether a key of this name holds a secret, and not just the path of a file with one.
pub fn names_a_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    SECRET_WORDS.iter().any(|word| key.contains(word)) && !key.trim_end().ends_with("_file")
}

/// Whether a key holds an address that is as good as a password: webhooks have no other.
fn is_url(key: &str) -> bool {
    let leaf = key.trim().rsplit('.').next().unwrap_or_default();
    ["url", "heartbeat_url", "ping"].contains(&leaf)
}

fn masked_line(line: &str) -> String {
    let mut shown = line.to_owned();
    if let Some((key, value)) = line.split_once('=').filter(|(key, _)| names_a_secret(key) || is_url(key)) {
        return format!("{key}={}", stars(value));
    }
    // A user name and a password may come between the scheme of an address and its host.
    if let (Some(scheme), Some(host)) = (line.find("://"), line.rfind('@')) {
        let from = scheme + "://".len();
        if let (true, Some(inside)) = (from < host, line.get(from..host)) {
            shown.replace_range(from..host, &stars(inside));
        }
    }
    // Parameters may contain secrets too.
    if let (Some(scheme), Some(parameters)) = (shown.find("://"), shown.find('?'))
        && scheme < parameters
    {
        let from = parameters + 1;
        let rest = shown.get(from..).unwrap_or_default();
        let to = from + rest.find(['"', '\'', '\n', '\r']).unwrap_or(rest.len());
        let inside = stars(shown.get(from..to).unwrap_or_default());
        shown.replace_range(from..to, &inside);
    }
    mask_named_values(shown)
}

/// Hides the values of secrets inside a value, as in `host=db password=secret`.
fn mask_named_values(mut shown: String) -> String {
    let mut from = 0;
    while let Some(equals) = shown.get(from..).and_then(|rest| rest.find('=')).map(|at| from + at) {
        let before = shown.get(..equals).unwrap_or_default().trim_end();
        let name = before.rsplit([' ', '\t', '"', '\'', '&', '?', '=', '{', ',']).next().unwrap_or_default();
        let rest = shown.get(equals + 1..).unwrap_or_default();
        let start = equals + 1 + (rest.len() - rest.trim_start_matches([' ', '\t']).len());
        from = start;
        if names_a_secret(name) {
            let end = start + value_len(shown.get(start..).unwrap_or_default());
            let hidden = stars(shown.get(start..end).unwrap_or_default());
            shown.replace_range(start..end, &hidden);
            from = end;
        }
    }
    shown
}

/// The length of a value: up to its closing quote, or up to the next space or quote.
fn value_len(text: &str) -> usize {
    let Some(quoted) = text.strip_prefix('\'') else {
        return text.find([' ', '\t', '"', '\'', '&', '\n', '\r']).unwrap_or(text.len());
    };
    let mut is_escaped = false;
    for (at, letter) in quoted.char_indices() {
        match letter {
            '\'' if !is_escaped => return 1 + at + 1,
            '\n' | '\r' => return 1 + at,
            _ => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    text.len()
}

/// One star per byte. Line breaks stay.
fn stars(text: &str) -> String {
    let hidden = text.trim_end_matches(['\n', '\r']);
    "*".repeat(hidden.len()) + text.get(hidden.len()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = masked(text);
        assert_eq!(shown, expected);
        assert_eq!(shown.len(), text.len());
    }

    #[test]
    fn passwords_and_parameters_of_an_address_are_hidden() {
        check("store = \"postgres://ann:pw@db/beat\"\n", "store = \"postgres://******@db/beat\"\n");
        check("store = postgres://ann:p@w@db/b\r\n", "store = postgres://*******@db/b\r\n");
        check("store = 'postgres://db/b?password=x' # ä", "store = 'postgres://db/b?**********' # ä");
        check("store = 'postgres://ä:ö@db'", "store = 'postgres://*****@db'");
    }

    #[test]
    fn passwords_among_named_values_are_hidden() {
        check("store = \"host=db password=pw user=ann\"\n", "store = \"host=db password=** user=ann\"\n");
        check("store = \"host=db Password = pw\"", "store = \"host=db Password = **\"");
        check("store = \"password='p\\'w x' host=db\"", "store = \"password=******** host=db\"");
        check("store = 'sslpassword=pw'", "store = 'sslpassword=**'");
    }

    #[test]
    fn what_is_called_a_secret_is_hidden() {
        check("token = 'abc'\nx = 1\n", "token =******\nx = 1\n");
        check("tokens_file = '/etc/t'\n", "tokens_file = '/etc/t'\n");
        check("a.Password=1", "a.Password=*");
        check("url = 'https://x/y'\nurl_file = '/a'", "url =**************\nurl_file = '/a'");
    }

    #[test]
    fn everything_else_stays() {
        check(
            "listen = \"[::1]:8060\"\nenv_pass = ['A@B']\n",
            "listen = \"[::1]:8060\"\nenv_pass = ['A@B']\n",
        );
        check("", "");
    }
}
