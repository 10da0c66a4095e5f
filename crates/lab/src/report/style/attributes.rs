//! The look of elements as attributes, on white paper: for programs that draw SVG and know no variables of CSS, or no style sheets.
//! Rules of the style sheet count more than attributes (SVG 1.1, section 6.4), so a browser follows its reader's scheme all the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use super::{DRAWING, LIGHT, LIGHT_HUES, LIGHT_STEPS, PAPER};

/// A rule of the style sheet of drawings.
struct Rule {
    /// The element, if the rule names one.
    element: Option<&'static str>,
    /// Classes that an element must have, all of them.
    classes: Vec<&'static str>,
    properties: Vec<(&'static str, &'static str)>,
}

/// The rules of [`DRAWING`] for elements within a drawing, one for each selector, in their order.
static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let mut rules = Vec::new();
    for (selectors, body) in DRAWING.split('}').filter_map(|rule| rule.split_once('{')) {
        let properties: Vec<_> = body.split(';').filter_map(|property| property.split_once(':')).collect();
        for selector in selectors.split(',').filter_map(|selector| selector.trim().strip_prefix(".plot ")) {
            let (element, classes) = selector.split_once('.').unwrap_or((selector, ""));
            rules.push(Rule {
                element: Some(element).filter(|element| !element.is_empty()),
                classes: classes.split('.').filter(|class| !class.is_empty()).collect(),
                properties: properties.clone(),
            });
        }
    }
    rules
});

/// The attributes of an element with these classes, each behind a blank.
pub(crate) fn attributes(element: &str, classes: &str) -> String {
    let classes: Vec<&str> = classes.split_whitespace().collect();
    let mut look: BTreeMap<&str, String> = BTreeMap::new();
    let fits = |rule: &&Rule| {
        rule.element.is_none_or(|its| its == element) && rule.classes.iter().all(|class| classes.contains(class))
    };
    for (property, value) in RULES.iter().filter(fits).flat_map(|rule| &rule.properties) {
        if let Some(value) = resolved(value, &classes) {
            look.insert(property, value);
        }
    }
    look.into_iter().fold(String::new(), |mut all, (property, value)| {
        let _ = write!(all, " {property}=\"{value}\"");
        all
    })
}

/// A value without variables. `None` if one of them is not set.
fn resolved(value: &str, classes: &[&str]) -> Option<String> {
    let Some(variable) = value.strip_prefix("var(--").and_then(|value| value.strip_suffix(')')) else {
        return Some(value.to_owned());
    };
    let (name, fallback) = variable.split_once(',').map_or((variable, None), |(name, other)| (name, Some(other)));
    match name {
        "c" => colour(classes).or_else(|| resolved(fallback?, classes)),
        name => PAPER.split(';').chain(LIGHT.split(';')).find_map(|variable| {
            let (its, value) = variable.strip_prefix("--")?.split_once(':')?;
            (its == name).then(|| value.to_owned())
        }),
    }
}

/// The colour that one of the classes stands for.
fn colour(classes: &[&str]) -> Option<String> {
    classes.iter().find_map(|class| {
        let place = |prefix: char| class.strip_prefix(prefix)?.parse::<usize>().ok();
        let hue = place('s').and_then(|place| LIGHT_HUES.get(place));
        hue.or_else(|| place('r').and_then(|place| LIGHT_STEPS.get(place))).map(|colour| (*colour).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_the_light_colours_of_its_rules() {
        assert_eq!(attributes("rect", "ground"), " fill=\"#fff\"");
        assert_eq!(attributes("text", "title"), " fill=\"#1d1c1a\" font-weight=\"600\"");
        assert_eq!(attributes("text", "tick"), " fill=\"#5f5c56\"", "the later rule counts");
        let line = attributes("path", "line thin d1 s0");
        for part in ["fill=\"none\"", "stroke=\"#0069a8\"", "stroke-width=\"1.7\"", "stroke-dasharray=\"3 4\""] {
            assert!(line.contains(part), "{line}");
        }
        assert!(attributes("circle", "dot emulated r5").contains("stroke=\"#b48f0a\""));
        assert!(attributes("path", "mark").contains("fill=\"#1d1c1a\""), "the colour of a mark without a line");
    }

    #[test]
    fn no_variable_is_left_in_any_rule() {
        for rule in RULES.iter() {
            let classes = [rule.classes.join(" "), "s1".to_owned()].join(" ");
            let look = attributes(rule.element.unwrap_or("path"), &classes);
            assert!(!look.contains("var("), "{look}");
            assert!(rule.properties.iter().all(|(property, _)| look.contains(property)), "{classes}: {look}");
        }
    }
}
