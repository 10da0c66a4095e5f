//! Evaluates the scores of a figure: whether each bound holds, where not, and by how much.
//!
//! Scores use the means over seeds. A point without data fails a score.

use crate::aggregate::{FigurePlace, Measurements, Point, describe, grid, grouped};
use crate::expression::{Comparison, Condition, Expression, Judgement, Margin, NoValue, Unit, references};
use crate::figures::FigureResult;
use crate::scenario::{Demand, Direction, ScoreSource, ScoreSpec};

#[cfg(test)]
mod tests;

/// A score and its result.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreResult {
    /// The short name.
    pub id: String,
    /// The bound in words.
    pub says: String,
    /// The source of the bound.
    pub source: ScoreSource,
    /// Whether the score is met.
    pub met: bool,
    /// The number of places: points of the grid, or steps along an axis.
    pub places: usize,
    /// The number of places where the bound holds.
    pub holds: usize,
    /// The share of places where the bound must hold.
    pub share: f64,
    /// Whether the form that was run has points for it. The quick form of a figure may have none, and says nothing then.
    pub applies: bool,
    /// The place furthest from holding, or closest to failing.
    pub worst: Option<Worst>,
    /// The reason why some place has no result.
    pub trouble: Option<String>,
}

/// The place that decides a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// The place in words; empty for a figure without a grid.
    pub place: String,
    /// The numbers that were compared; absent for words.
    pub margin: Option<Margin>,
}

impl Worst {
    /// The margin: in points for shares, otherwise in per cent of the bound.
    #[must_use]
    pub fn by(&self) -> Option<String> {
        let margin = self.margin.as_ref()?;
        let slack = margin.slack();
        let size = match margin.unit {
            Unit::Share => format!("{}\u{a0}points", crate::expression::three_digits(slack.abs() * 100.0)),
            unit if margin.bound == 0.0 => unit.print(slack.abs()),
            _ => Unit::Share.print(margin.relative_slack().abs()),
        };
        Some(if slack < 0.0 { format!("{size} short") } else { format!("{size} to spare") })
    }

    /// The measured value and its bound: `91.2 % (≥ 98 %)`.
    #[must_use]
    pub fn numbers(&self) -> Option<String> {
        let Margin { measured, comparison, bound, unit } = self.margin.as_ref()?;
        Some(format!("{} ({}\u{a0}{})", unit.print(*measured), comparison.symbol(), unit.print(*bound)))
    }
}

impl ScoreResult {
    /// One line: the number of places where the bound holds, the deciding place, and the margin.
    #[must_use]
    pub fn measured(&self) -> String {
        let by = self.worst.as_ref().and_then(Worst::by).map(|by| format!(", {by}")).unwrap_or_default();
        self.line(&by)
    }

    /// The same line without the margin, for a table with a column for it.
    #[must_use]
    pub fn detail(&self) -> String {
        self.line("")
    }

    fn line(&self, by: &str) -> String {
        let mut parts = Vec::new();
        if self.places > 1 {
            parts.push(format!("holds at {} of {}", self.holds, self.places));
            if self.share < 1.0 && self.share > 0.0 {
                parts.push(format!("needs {}", Unit::Share.print(self.share)));
            }
        }
        if let Some(worst) = &self.worst {
            let place = if worst.place.is_empty() { String::new() } else { format!(" at {}", worst.place) };
            let numbers = worst.numbers().unwrap_or_else(|| "words differ".to_owned());
            // Metrics differ if they do so in one place, so there the best place decides.
            let decides = if self.share > 0.0 { "worst" } else { "best" };
            parts.push(match self.places {
                0 | 1 => format!("{numbers}{place}{by}"),
                _ => format!("{decides}{place}: {numbers}{by}"),
            });
        }
        parts.extend(self.trouble.clone());
        parts.join("; ")
    }
}

/// The number of scores that are met, and of all that could be judged.
#[must_use]
pub fn count(scores: &[ScoreResult]) -> (usize, usize) {
    let judged = || scores.iter().filter(|score| score.applies);
    (judged().filter(|score| score.met).count(), judged().count())
}

/// All scores of a figure, in the scenario's order. `measurements` holds the figure and those to which it refers.
#[must_use]
pub fn evaluate(figure: &FigureResult, measurements: &Measurements<'_>) -> Vec<ScoreResult> {
    let first = figure.scenario.curves.first().map_or("", |curve| &curve.name);
    let judge = |score: &ScoreSpec| {
        let curve = score.curve.as_deref().unwrap_or(first);
        Judge { figure, score, measurements, curve }.result()
    };
    figure.scenario.scores.iter().map(judge).collect()
}

/// Judges a score of a figure by the runs of a curve.
struct Judge<'a> {
    figure: &'a FigureResult,
    score: &'a ScoreSpec,
    measurements: &'a Measurements<'a>,
    curve: &'a str,
}

impl Judge<'_> {
    fn result(&self) -> ScoreResult {
        let Self { figure, score, .. } = *self;
        let mut tally = Tally::default();
        let judged = self.judge_all(&mut tally);
        let share = match &score.must {
            Demand::Holds { share, .. } => *share,
            Demand::Monotone { .. } => 1.0,
            // One place is enough.
            Demand::Differs { .. } => 0.0,
        };
        let enough = tally.holds as f64 >= share * tally.places as f64 - 1e-9 && tally.holds > 0;
        // Metrics differ if they do so in one place, so there the best place decides.
        let decides = if let Demand::Differs { .. } = score.must { tally.best } else { tally.worst };
        let untrue = self.untrue();
        let applies = tally.places > 0 || !figure.quick || judged.is_err();
        let trouble =
            match judged {
                _ if untrue.is_some() => untrue.clone(),
                Ok(()) if !applies => Some("not judged: the quick form has none of its points".to_owned()),
                Err(why) => Some(why),
                Ok(()) if tally.places == 0 => Some("no data: the score applies to no point of the grid".to_owned()),
                Ok(()) => tally.trouble.map(|(why, count)| {
                    if tally.places == 1 { why } else { format!("{why} at {count} of {}", tally.places) }
                }),
            };
        ScoreResult {
            id: score.id.clone(),
            says: score.says.clone(),
            source: score.source,
            met: enough && tally.places > 0 && untrue.is_none(),
            applies,
            places: tally.places,
            holds: tally.holds,
            share,
            worst: decides.map(|(place, judgement)| Worst { place, margin: judgement.margin }),
            trouble,
        }
    }

    fn at<'p>(&'p self, point: &'p Point) -> FigurePlace<'p> {
        self.measurements.at(&self.figure.info.id, self.curve, point)
    }

    /// The points of a score.
    fn points(&self) -> Result<Vec<Point>, String> {
        let mut points = grid(&self.figure.scenario);
        let Some(filter) = &self.score.filter else { return Ok(points) };
        let filter = condition(filter)?;
        let mut trouble = None;
        points.retain(|point| {
            filter.holds(&self.at(point)).unwrap_or_else(|why| {
                // A point without a result of the filter stays, so that its data are seen to be missing.
                trouble = Some(why.to_string());
                true
            })
        });
        trouble.map_or(Ok(points), |why| Err(format!("where: {why}")))
    }

    /// The reason why runs at the score's points are invalid.
    fn untrue(&self) -> Option<String> {
        // Without a result of its filter, a score has trouble anyway.
        let points = self.points().unwrap_or_default();
        let mut curves = vec![self.curve.to_owned()];
        curves
            .extend(self.score.expressions().into_iter().flat_map(references).filter_map(|reference| reference.curve));
        curves.sort();
        curves.dedup();
        let places = points.iter().flat_map(|point| curves.iter().map(move |curve| (curve, point)));
        let runs = places.flat_map(|(curve, point)| self.measurements.runs(&self.figure.info.id, curve, point));
        let mut untrue = runs.filter(|run| !run.is_valid());
        let flaws = untrue.next()?.flaws().join(", ");
        Some(match untrue.count() {
            0 => format!("a run is invalid: {flaws}"),
            more => format!("{} runs are invalid, the first because {flaws}", more + 1),
        })
    }

    fn judge_all(&self, tally: &mut Tally) -> Result<(), String> {
        let scenario = &self.figure.scenario;
        let points = self.points()?;
        match &self.score.must {
            Demand::Holds { expression, .. } => {
                let must = condition(expression)?;
                for point in &points {
                    tally.add(&describe(point, scenario), must.judge(&self.at(point)));
                }
            }
            Demand::Differs { expression, than, by } => {
                let (one, other) = (number(expression)?, number(than)?);
                for point in &points {
                    let place = self.at(point);
                    let judged = one.number(&place).and_then(|one| Ok((one, other.number(&place)?)));
                    tally.add(&describe(point, scenario), judged.map(|(one, other)| differs(one, other, *by)));
                }
            }
            Demand::Monotone { expression, along, direction, tolerance } => {
                let value = number(expression)?;
                for (from, to) in steps(&points, along)? {
                    let [before, after] = [from, to].map(|point| self.at(point));
                    let unit = value.unit(&after);
                    let judged = value.number(&before).and_then(|before| Ok((before, value.number(&after)?)));
                    let place = format!("{} (from {})", describe(to, scenario), from[along].text);
                    tally.add(&place, judged.map(|(before, after)| step(before, after, *direction, *tolerance, unit)));
                }
            }
        }
        Ok(())
    }
}

/// The results so far, place by place.
#[derive(Debug, Default)]
struct Tally {
    places: usize,
    holds: usize,
    worst: Option<(String, Judgement)>,
    best: Option<(String, Judgement)>,
    trouble: Option<(String, usize)>,
}

impl Tally {
    fn add(&mut self, place: &str, judged: Result<Judgement, NoValue>) {
        self.places += 1;
        match judged {
            Ok(judgement) => {
                self.holds += usize::from(judgement.holds);
                if self.worst.as_ref().is_none_or(|(_, worst)| judgement.is_worse_than(worst)) {
                    self.worst = Some((place.to_owned(), judgement.clone()));
                }
                if self.best.as_ref().is_none_or(|(_, best)| best.is_worse_than(&judgement)) {
                    self.best = Some((place.to_owned(), judgement));
                }
            }
            Err(why) => self.trouble.get_or_insert_with(|| (why.to_string(), 0)).1 += 1,
        }
    }
}

fn condition(text: &str) -> Result<Condition, String> {
    Condition::parse(text).map_err(|error| format!("'{text}': {error}"))
}

fn number(text: &str) -> Result<Expression, String> {
    Expression::parse(text).map_err(|error| format!("'{text}': {error}"))
}

fn judgement(measured: f64, comparison: Comparison, bound: f64, unit: Unit, holds: bool) -> Judgement {
    Judgement { holds, margin: Some(Margin { measured, comparison, bound, unit }) }
}

fn differs(one: f64, other: f64, by: f64) -> Judgement {
    let greater = one.abs().max(other.abs());
    let difference = if greater == 0.0 { 0.0 } else { (one - other).abs() / greater };
    judgement(difference, Comparison::AtLeast, by, Unit::Share, difference >= by)
}

fn step(before: f64, after: f64, direction: Direction, tolerance: f64, unit: Unit) -> Judgement {
    let leeway = tolerance * before.abs();
    let (comparison, bound) = match direction {
        Direction::Falling => (Comparison::AtMost, before + leeway),
        Direction::Rising => (Comparison::AtLeast, before - leeway),
    };
    let holds = if direction == Direction::Falling { after <= bound } else { after >= bound };
    judgement(after, comparison, bound, unit, holds)
}

/// Pairs of neighbours along an axis with equal values of all other axes, in the order of the axis' numbers.
fn steps<'p>(points: &'p [Point], along: &str) -> Result<Vec<(&'p Point, &'p Point)>, String> {
    let key = |point: &Point| -> Vec<String> {
        point.iter().filter(|(axis, _)| *axis != along).map(|(_, value)| value.text.clone()).collect()
    };
    let placed = |point: &'p Point| {
        let at = point.get(along).and_then(|value| value.number);
        let at = at.ok_or_else(|| format!("no data: the axis '{along}' has no numbers"))?;
        Ok((key(point), (at, point)))
    };
    let mut rows = grouped(points.iter().map(placed).collect::<Result<Vec<_>, String>>()?);
    for (_, row) in &mut rows {
        row.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    Ok(rows.iter().flat_map(|(_, row)| row.windows(2).map(|pair| (pair[0].1, pair[1].1))).collect())
}
