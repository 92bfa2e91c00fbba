//! Every page, in both themes, on a desk and on phones: no error, no request to elsewhere, nothing that sticks out, no
//! serious fault for people who see or move little, and readable without scripts.

use super::Site;

#[test]
fn the_fleet_page_is_sound() {
    Site::busy().script("page.py", &["/"]);
}

#[test]
fn the_login_page_is_sound() {
    Site::empty().script("page.py", &["/login", "--stranger"]);
}
