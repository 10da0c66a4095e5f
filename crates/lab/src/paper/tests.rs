use proptest::prelude::*;

use super::*;

fn error(text: &str) -> String {
    read(text, &["rate", "rtt"]).unwrap_err().to_string()
}

#[test]
fn a_table_of_published_numbers_is_read() {
    let text = "# from the text of §4\ncurve,rate,rtt,metric,value,bound,note\n\n\
        udt-2004,1gbit,,utilisation,98%,at-least,\"abstract, and \"\"Figure 3\"\"\"\n,,10ms, jain ,0.99,,\n";
    let published = read(text, &["rate", "rtt"]).unwrap();
    assert_eq!(published.len(), 2);
    assert_eq!(published[0].curve.as_deref(), Some("udt-2004"));
    assert_eq!(published[0].point["rate"].number, Some(1e9));
    assert!(!published[0].point.contains_key("rtt"));
    assert_eq!((published[0].value, published[0].bound), (0.98, Bound::AtLeast));
    assert_eq!(published[0].note, "abstract, and \"Figure 3\"");
    assert_eq!((published[1].metric.as_str(), published[1].bound), ("jain", Bound::Is));
}

#[test]
fn mistakes_are_named_with_their_line() {
    assert!(error("metric,value,speed\n").contains("line 1: unknown column 'speed'"));
    assert!(error("metric,value,metric\n").contains("twice"));
    assert!(error("metric,rate\n").contains("'value' is missing"));
    assert!(error("metric,value\n\ngoodput\n").contains("line 3: 1 fields"));
    assert!(error("metric,value\ngoodput,fast\n").contains("line 2: 'fast' is not a quantity"));
    assert!(error("metric,value,bound\ngoodput,1,exactly\n").contains("unknown bound"));
    assert!(error("metric,value\n\"goodput,1\n").contains("not closed"));
    assert!(error("metric,value\n\"goodput\"s,1\n").contains("a comma has to"));
    assert_eq!(read("", &[]), Ok(Vec::new()));
}

proptest! {
    #[test]
    fn no_table_makes_it_panic(text in "(metric,value\n)?[\\PC\n\",]{0,120}") {
        let _ = read(&text, &["rate"]);
    }
}
