use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Values {
    numbers: BTreeMap<String, f64>,
    texts: BTreeMap<String, String>,
}

impl Environment for Values {
    fn number(&self, reference: &Reference) -> Option<f64> {
        self.numbers.get(&reference.to_string()).copied()
    }

    fn text(&self, axis: &str) -> Option<&str> {
        self.texts.get(axis).map(String::as_str)
    }
}

fn values() -> Values {
    let numbers = [
        ("utilisation", 0.97),
        ("rate", 1e8),
        ("rtt", 0.01),
        ("goodput.udt-2004", 6e7),
        ("goodput.udt-2004[udt]", 8e7),
        ("goodput.udt-2004[no warnings]@a11", 9e7),
        ("zero", 0.0),
    ];
    Values {
        numbers: numbers.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        texts: [("queue".to_owned(), "red".to_owned())].into(),
    }
}

fn number(text: &str) -> f64 {
    Expression::parse(text).unwrap().number(&values()).unwrap()
}

fn holds(text: &str) -> bool {
    Condition::parse(text).unwrap().holds(&values()).unwrap()
}

/// The mistake in a condition.
fn error(text: &str) -> String {
    Condition::parse(text).unwrap_err().to_string()
}

/// The mistake in a number.
fn error_in_number(text: &str) -> String {
    Expression::parse(text).unwrap_err().to_string()
}

#[test]
fn products_bind_more_than_sums_and_both_go_left_to_right() {
    assert_eq!(number("2 + 3 * 4 - 10 / 4 / 5"), 13.5);
    assert_eq!(number("(2 + 3) * (0 - 4)"), -20.0);
    assert_eq!(number("10 - 3 - 2"), 5.0);
}

#[test]
fn quantities_count_in_base_units() {
    assert_eq!(number("100mbit"), 1e8);
    assert_eq!(number("10ms"), 0.01);
    assert_eq!(number("1MB"), 1e6);
    assert_eq!(number("2KiB"), 2048.0);
    assert_eq!(number("5%"), 0.05);
    assert_eq!(number("1e-4"), 1e-4);
    assert_eq!(number("1.5e+2"), 150.0);
}

#[test]
fn names_hold_hyphens_and_dots_and_a_difference_has_spaces() {
    assert_eq!(number("goodput.udt-2004"), 6e7);
    assert_eq!(number("goodput.udt-2004 - 1mbit"), 5.9e7);
    assert_eq!(number("rtt -1ms"), 0.01 - 0.001);
}

#[test]
fn other_curves_and_other_figures_are_named_beside_the_metric() {
    assert_eq!(number("goodput.udt-2004[udt] / goodput.udt-2004"), 8.0 / 6.0);
    assert_eq!(number("goodput.udt-2004[no warnings]@A11"), 9e7);
}

#[test]
fn functions_take_numbers() {
    assert_eq!(number("abs(utilisation - 1) + min(3, 2, 4) + max(1, 5)"), 0.03_f64.max(1.0 - 0.97) + 7.0);
    assert!(error_in_number("abs(1, 2)").contains("one argument"));
    assert!(error_in_number("min(1)").contains("two arguments"));
    assert!(error_in_number("mean(1)").contains("abs, min and max"));
    assert!(error_in_number("min(1 < 2, 3)").contains("expected ')'"));
}

#[test]
fn and_binds_more_than_or() {
    assert!(holds("1 < 2 or 1 < 2 and 2 < 1"));
    assert!(!holds("(1 < 2 or 1 < 2) and 2 < 1"));
    assert!(holds("rate >= 1mbit or rtt > 10ms"));
    assert!(holds("rtt <= 10ms and rtt == 10ms and rtt != 11ms"));
}

#[test]
fn words_of_an_axis_are_compared_by_name() {
    assert!(holds("queue == \"red\" and queue != \"drop tail\""));
    assert!(!holds("queue == \"drop tail\""));
    assert!(error("queue < \"red\"").contains("no order"));
    assert!(error("1 == \"red\"").contains("axis"));
}

#[test]
fn an_expression_with_a_missing_name_has_no_value() {
    let condition = Condition::parse("1 < 2 or jain >= 0.9").unwrap();
    assert_eq!(condition.holds(&values()), Err(NoValue::Missing("jain".to_owned())));
    assert_eq!(Expression::parse("1 / zero").unwrap().number(&values()), Err(NoValue::NotFinite));
    assert_eq!(Expression::parse("0 / zero").unwrap().number(&values()), Err(NoValue::NotFinite));
}

#[test]
fn the_comparison_that_decides_is_reported() {
    let judge = |text: &str| Condition::parse(text).unwrap().judge(&values()).unwrap();
    let both = judge("utilisation >= 0.5 and utilisation >= 0.98");
    assert!(!both.holds);
    assert_eq!(both.margin.as_ref().map(|margin| margin.bound), Some(0.98));
    assert!((both.margin.unwrap().slack() + 0.01).abs() < 1e-12);
    let either = judge("utilisation >= 0.98 or utilisation >= 0.5");
    assert!(either.holds);
    assert_eq!(either.margin.map(|margin| margin.bound), Some(0.5));
}

#[test]
fn mistakes_are_named_with_their_column() {
    for error in [error, error_in_number] {
        assert!(error("").starts_with("column 1: expected a number"));
        assert!(error("1 +").starts_with("column 4: expected a number"));
        assert!(error("(1 + 2").starts_with("column 7: expected ')'"));
        assert!(error("5parsecs > 1").starts_with("column 1: '5parsecs' is not a quantity"));
        assert!(error("a[b > 1").contains("']' is missing"));
        assert!(error("a@ > 1").contains("id of a figure"));
        assert!(error("a = 3").contains("=="));
        assert!(error("a ? b").contains("'?' means nothing"));
        assert!(error("-1 > a").starts_with("column 1: expected a number"));
    }
    assert!(error_in_number("1 2").starts_with("column 3: expected an operator"));
    assert!(error_in_number("1 2").ends_with("found the number 2"));
    assert!(error("1 < 2 < 3").contains("a < b and b < c"));
    assert!(error("1 and 2").contains("expected a condition, found a number"));
    assert!(error("(1 < 2) + 1").contains("expected a number, found a condition"));
    assert!(error("(a < 1 or b").starts_with("column 11: expected a condition"));
    assert!(error("(a < 1 or b <").starts_with("column 14: expected a number"));
    assert!(error("a + 1").contains("compare it"));
    assert!(error_in_number("a < 1").contains("expected a number"));
}

#[test]
fn length_and_depth_are_bounded() {
    let number = |text: &str| Expression::parse(text).unwrap().number(&values()).unwrap();
    assert!(error_in_number(&"1+".repeat(MAX_LENGTH)).contains("at most"));
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(number(&nested(MAX_DEPTH)), 1.0);
    assert!(error_in_number(&nested(MAX_DEPTH + 1)).contains("nested"));
    assert!(error_in_number(&"max(".repeat(MAX_DEPTH + 1)).contains("nested"));
    let condition = |depth: usize| format!("{}1 < 2{}", "(".repeat(depth), ")".repeat(depth));
    assert!(holds(&condition(MAX_DEPTH)) && holds(&format!("{} < 2", nested(MAX_DEPTH))));
    assert!(error(&condition(MAX_DEPTH + 1)).contains("nested"));
    assert_eq!(number(&format!("1{}", "+1".repeat(400))), 401.0);
}

#[test]
fn everything_that_is_mentioned_can_be_listed() {
    let condition = Condition::parse("a / b[c]@d > 1 and queue == \"red\" or a < min(2, e)").unwrap();
    assert_eq!(condition.compared_texts(), [("queue", "red")]);
    let names: Vec<String> = condition.references().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "b[c]@d", "e", "queue"]);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        let _ = Expression::parse(&text).map(|expression| expression.number(&values()));
        let _ = Condition::parse(&text).map(|condition| condition.judge(&values()));
    }

    #[test]
    fn no_row_of_tokens_makes_it_panic(
        tokens in prop::collection::vec(
            prop::sample::select(vec!["1", "2ms", "a", "rtt", "(", ")", "+", "-", "*", "/", "<", ">=", "==", "and", "or",
                "abs(", "min(", ",", "[c]", "@f", "\"red\"", "queue", "%", "5%", "1e", "."]),
            0..40,
        ),
    ) {
        let text = tokens.join(" ");
        let _ = Expression::parse(&text).map(|expression| expression.number(&values()));
        let _ = Condition::parse(&text).map(|condition| condition.judge(&values()));
    }

    #[test]
    fn a_condition_and_its_margin_agree(left in 0.0..10.0f64, right in 0.0..10.0f64) {
        for comparison in ["<", "<=", ">", ">="] {
            let text = format!("{left} {comparison} {right}");
            let judgement = Condition::parse(&text).unwrap().judge(&values()).unwrap();
            prop_assert_eq!(judgement.holds, judgement.margin.unwrap().slack() >= 0.0);
        }
    }
}

#[test]
fn a_rate_over_a_quantity_is_a_number_without_a_unit() {
    let unit = |text: &str| {
        let judgement = Condition::parse(text).unwrap().judge(&values()).unwrap();
        judgement.margin.unwrap().unit
    };
    assert_eq!(unit("abs(goodput.udt-2004 / 50mbit - 1) <= 0.3"), Unit::Number);
    assert_eq!(unit("goodput.udt-2004 >= 0.5 * 100mbit"), Unit::BitsPerSecond);
}
