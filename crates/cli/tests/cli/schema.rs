//! A checker for the part of JSON Schema that the schema of the records uses. A keyword that it does not know fails the
//! test. It is stricter in one point: a field that the schema does not describe is an error.

use serde_json::Value;

/// Keywords that only people read.
const FOR_PEOPLE: [&str; 4] = ["$schema", "$defs", "title", "description"];

/// A schema, and the document that its references lead into.
#[derive(Clone, Copy)]
pub(crate) struct Schema<'a> {
    document: &'a Value,
    at: &'a Value,
}

impl<'a> Schema<'a> {
    pub(crate) fn of(document: &'a Value) -> Self {
        Self { document, at: document }
    }

    /// Checks `value`, which stands at `place`.
    pub(crate) fn check(self, value: &Value, place: &str) -> Result<(), String> {
        let words = self.at.as_object().expect("a schema is an object");
        for (keyword, wanted) in words {
            let fits = match keyword.as_str() {
                "$ref" => self.referred(wanted).check(value, place).map(|()| true)?,
                "const" => value == wanted,
                "enum" => wanted.as_array().unwrap().contains(value),
                "type" => match wanted {
                    Value::Array(names) => names.iter().any(|name| is_of_type(value, name.as_str().unwrap())),
                    name => is_of_type(value, name.as_str().unwrap()),
                },
                "minimum" => value.as_f64() >= wanted.as_f64(),
                "maximum" => value.as_f64() <= wanted.as_f64(),
                "pattern" => matches_pattern(value.as_str().unwrap_or_default(), wanted.as_str().unwrap()),
                "required" => {
                    let names = wanted.as_array().unwrap().iter();
                    match names.map(|name| name.as_str().unwrap()).find(|name| value.get(name).is_none()) {
                        Some(name) => return Err(format!("{place} has no {name}")),
                        None => true,
                    }
                }
                "properties" => self.check_fields(value, wanted, place).map(|()| true)?,
                "items" => {
                    for item in value.as_array().into_iter().flatten() {
                        self.to(wanted).check(item, &format!("{place}[]"))?;
                    }
                    true
                }
                "anyOf" => self.fitting(wanted, value, place)? >= 1,
                "oneOf" => self.fitting(wanted, value, place)? == 1,
                _ if FOR_PEOPLE.contains(&keyword.as_str()) => true,
                _ => panic!("the checker does not know the keyword {keyword}"),
            };
            if !fits {
                return Err(format!("{place} is {value}, and {keyword} is {wanted}"));
            }
        }
        Ok(())
    }

    fn to(self, at: &'a Value) -> Self {
        Self { at, ..self }
    }

    fn referred(self, reference: &Value) -> Self {
        let pointer = reference.as_str().unwrap().strip_prefix('#').expect("a reference within the document");
        self.to(self.document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} leads nowhere")))
    }

    fn check_fields(self, value: &Value, properties: &'a Value, place: &str) -> Result<(), String> {
        for (name, field) in value.as_object().into_iter().flatten() {
            match properties.get(name) {
                Some(schema) => self.to(schema).check(field, &format!("{place}.{name}"))?,
                None => return Err(format!("{place}.{name} is not described")),
            }
        }
        Ok(())
    }

    /// How many of `schemas` fit. If none does, the error has the reasons of all.
    fn fitting(self, schemas: &'a Value, value: &Value, place: &str) -> Result<usize, String> {
        let results: Vec<_> =
            schemas.as_array().unwrap().iter().map(|schema| self.to(schema).check(value, place)).collect();
        let count = results.iter().filter(|result| result.is_ok()).count();
        let errors: Vec<String> = results.into_iter().filter_map(Result::err).collect();
        if count == 0 { Err(errors.join("\n  or ")) } else { Ok(count) }
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => panic!("the checker does not know the type {name}"),
    }
}

fn matches_pattern(text: &str, pattern: &str) -> bool {
    match pattern {
        "^[0-9a-f]{64}$" => text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
        "^[A-Z_]+$" => !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'_')),
        "^SHA256:" => text.starts_with("SHA256:"),
        _ => panic!("the checker does not know the pattern {pattern}"),
    }
}

#[test]
fn the_checker_finds_each_kind_of_difference() {
    let document = serde_json::json!({
        "oneOf": [{ "$ref": "#/$defs/a" }],
        "$defs": { "a": { "type": "object", "required": ["n"], "properties": {
            "n": { "type": "integer", "minimum": 0, "maximum": 9 },
            "s": { "anyOf": [{ "enum": ["x"] }, { "type": "null" }] },
            "l": { "items": { "const": 1 } },
            "c": { "pattern": "^[A-Z_]+$" },
            "t": { "type": ["string", "null"] },
        } } },
    });
    let check = |text: &str| Schema::of(&document).check(&serde_json::from_str(text).unwrap(), "it");
    for good in [r#"{"n":0}"#, r#"{"n":9,"s":"x","l":[1,1],"c":"A_B"}"#, r#"{"n":1,"s":null,"l":[],"t":null}"#] {
        check(good).unwrap();
    }
    for bad in [
        "{}",
        "3",
        r#"{"n":10}"#,
        r#"{"n":-1}"#,
        r#"{"n":0.5}"#,
        r#"{"n":"0"}"#,
        r#"{"n":0,"s":"y"}"#,
        r#"{"n":0,"l":[1,2]}"#,
        r#"{"n":0,"c":"a"}"#,
        r#"{"n":0,"t":1}"#,
        r#"{"n":0,"more":0}"#,
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}
