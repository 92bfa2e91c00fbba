//! Encryption, and whom it trusts.

use evenbeat::testing::store::postgres::PgConfig;
use evenbeat_core::store::{Store, StoreDown};

use crate::support::postgres::{Database, Way, runtime, said, store};

/// Asks something over a connection with these parts of its address; whether it was encrypted.
fn ask(parts: &str) -> Result<bool, StoreDown> {
    let database = Database::new();
    let address = database.address(Way::Direct).replace("sslmode=disable", parts);
    let config: PgConfig = format!("{address}&application_name=asker").parse().unwrap();
    let mut store = store(config);
    store.watch(0)?;
    let sql = "SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity USING (pid) \
               WHERE application_name = 'asker' AND datname = current_database()";
    Ok(runtime().block_on(database.connect().query_one(sql, &[])).unwrap().get(0))
}

#[test]
fn the_address_says_whether_it_is_encrypted_and_whom_it_trusts() {
    let certificates = said("EVENBEAT_TEST_CERTIFICATES");
    assert_eq!(ask("sslmode=disable"), Ok(false));
    assert_eq!(ask("sslmode=prefer"), Ok(true));
    assert_eq!(ask("sslmode=require"), Ok(true));
    assert_eq!(ask(&format!("sslmode=verify-full&sslrootcert={certificates}/root.crt")), Ok(true));
    for mode in ["require", "verify-full"] {
        let down = ask(&format!("sslmode={mode}&sslrootcert={certificates}/other.crt")).unwrap_err();
        assert!(down.to_string().contains("certificate"), "{down}");
    }
}
