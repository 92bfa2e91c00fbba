//! Addresses with a query.

use std::fmt::Write as _;

/// A path with these fields as its query, in their order.
pub(crate) fn url_query<'a>(path: &str, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut url = path.to_owned();
    for (place, (name, value)) in fields.into_iter().enumerate() {
        url.push(if place == 0 { '?' } else { '&' });
        url.push_str(name);
        url.push('=');
        for byte in value.bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' | b'@' => {
                    url.push(char::from(byte));
                }
                b' ' => url.push('+'),
                // Writing to a string cannot fail.
                _ => drop(write!(url, "%{byte:02X}")),
            }
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped() {
        assert_eq!(url_query("/a", []), "/a");
        assert_eq!(url_query("/a", [("x", "1h"), ("y", "a b&c=ü%")]), "/a?x=1h&y=a+b%26c%3D%C3%BC%25");
    }
}
