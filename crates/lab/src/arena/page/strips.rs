//! The picture of scores: a lane for each family and controller. Missed cells stand at their score, passed ones beyond 1.

use crate::arena::results::Results;
use crate::report::svg::{Anchor, Canvas, escape, number};

/// The width in units of the drawing, about a column of text in pixels.
const WIDTH: f64 = 720.0;
/// From the left edge to score 0, the width of the scale, and the start of the passed cells.
const LEFT: f64 = 126.0;
const SCALE: f64 = 330.0;
const PASSED: f64 = LEFT + SCALE + 22.0;
/// The end of the passed cells. Behind them stands their number.
const END: f64 = 684.0;
/// The height of a lane, the gap between families, and the space above.
const LANE: f64 = 13.0;
const GAP: f64 = 8.0;
const TOP: f64 = 44.0;
/// The radius of a dot, and the least distance of two passed ones.
const RADIUS: f64 = 3.2;
const STEP: f64 = 7.6;
/// Colours of lines without an order, as in other drawings.
const HUES: usize = 6;

/// The picture as a figure of the page.
pub(super) fn html(results: &Results) -> String {
    let lanes = results.controllers.len();
    let mut canvas = Canvas::default();
    legend(&mut canvas, &results.controllers);
    let families = results.families();
    let block = lanes as f64 * LANE + GAP;
    let bottom = TOP + families.len() as f64 * block;
    for tenth in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = LEFT + SCALE * tenth;
        canvas.line("grid", (x, TOP - 4.0), (x, bottom));
        canvas.text("tick small", (x, bottom + 15.0), Anchor::Middle, &number_text(tenth));
    }
    canvas.text("words small", (LEFT + SCALE / 2.0, bottom + 31.0), Anchor::Middle, "score of missed cells");
    canvas.text("words small", (PASSED, bottom + 15.0), Anchor::Start, "passed");
    for (row, family) in families.iter().enumerate() {
        let top = TOP + row as f64 * block;
        canvas.text("", (LEFT - 12.0, top + (block - GAP) / 2.0 + 4.0), Anchor::End, family.name());
        for lane in 0..lanes {
            let y = top + (lane as f64 + 0.5) * LANE;
            canvas.line("grid", (LEFT, y), (LEFT + SCALE, y));
            let of_lane = results.of(Some(*family)).map(|(cell, verdicts)| (cell, &verdicts[lane]));
            let (passed, missed): (Vec<_>, Vec<_>) = of_lane.partition(|(_, verdict)| verdict.passed);
            let hue = format!("s{}", lane % HUES);
            for (cell, verdict) in missed {
                let words = format!("{}: {}, score {:.3}", cell.label, verdict.words(), verdict.score);
                dot(&mut canvas, &hue, (LEFT + SCALE * verdict.score, y), "mark", &words);
            }
            let step = STEP.min((END - PASSED - 28.0) / passed.len().max(1) as f64);
            for (place, (cell, verdict)) in passed.iter().enumerate() {
                let words = format!("{}: {}", cell.label, verdict.words());
                dot(&mut canvas, &hue, (PASSED + RADIUS + step * place as f64, y), "dot", &words);
            }
            if !passed.is_empty() {
                let x = PASSED + step * passed.len() as f64 + 5.0;
                canvas.text("tick small", (x, y + 4.0), Anchor::Start, &passed.len().to_string());
            }
        }
    }
    let height = bottom + 40.0;
    format!(
        "<figure>\n<div class=\"wide\"><svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" \
         aria-label=\"Scores of all cells by family and controller\">\n{}</svg></div>\n<figcaption>Every dot is a cell. Missed \
         cells stand at their score, passed ones to the right.</figcaption>\n</figure>\n",
        number(WIDTH),
        number(height),
        canvas.finish()
    )
}

/// The colours of the controllers.
fn legend(canvas: &mut Canvas, controllers: &[String]) {
    let mut x = LEFT;
    for (lane, controller) in controllers.iter().enumerate() {
        canvas.circle(&format!("dot s{}", lane % HUES), (x + RADIUS, 16.0), RADIUS + 0.6);
        canvas.text("", (x + 12.0, 20.0), Anchor::Start, controller);
        x += 28.0 + crate::report::svg::width(controller);
    }
}

/// A dot with a tooltip.
fn dot(canvas: &mut Canvas, hue: &str, at: (f64, f64), class: &str, words: &str) {
    canvas.put("<g>");
    canvas.put(&format!("<title>{}</title>", escape(words)));
    canvas.circle(&format!("{class} {hue}"), at, RADIUS);
    canvas.put("</g>");
}

fn number_text(value: f64) -> String {
    format!("{value}")
}
