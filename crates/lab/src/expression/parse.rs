//! Recursive descent from tokens to a tree. `or` binds least, then `and`, comparison, sum, product.

use super::judge::{Comparison, Condition};
use super::lexer::{Token, error, tokens};
use super::{Expression, ExpressionError, Function, MAX_DEPTH, Operator, Reference};

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::AtMost),
    (">", Comparison::Greater),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
];
const SUMS: [(&str, Operator); 2] = [("+", Operator::Add), ("-", Operator::Subtract)];
const PRODUCTS: [(&str, Operator); 2] = [("*", Operator::Multiply), ("/", Operator::Divide)];
const FUNCTIONS: [(&str, Function); 3] = [("abs", Function::Abs), ("min", Function::Min), ("max", Function::Max)];

/// All metrics and axes in a number or a condition. Text that is neither has none.
pub(crate) fn references(text: &str) -> Vec<Reference> {
    let of_number = Expression::parse(text).map(|expression| expression.references());
    of_number.or_else(|_| Condition::parse(text).map(|condition| condition.references())).unwrap_or_default()
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The place of the first mistake, and the text that could stand there.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let parsed = parser.sum()?;
        if parser.one_of(&COMPARISONS).is_some() {
            return error(1, "expected a number, found a condition: leave the comparison out");
        }
        parser.end().map(|()| parsed)
    }
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The place of the first mistake, and the text that could stand there.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let parsed = parser.or()?;
        parser.end().map(|()| parsed)
    }
}

struct Parser<'t> {
    tokens: Vec<(usize, Token<'t>)>,
    next: usize,
    depth: usize,
    /// The column after the last character.
    end: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self, ExpressionError> {
        Ok(Self { tokens: tokens(text)?, next: 0, depth: 0, end: text.chars().count() + 1 })
    }

    fn peek(&self) -> Option<&Token<'t>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn column(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(column, _)| *column)
    }

    /// The error that something else was expected at the next token.
    fn expected<T>(&self, what: &str) -> Result<T, ExpressionError> {
        let found = self.peek().map_or_else(|| "the end".to_owned(), Token::to_string);
        error(self.column(), format!("expected {what}, found {found}"))
    }

    fn take(&mut self, symbol: &str) -> bool {
        let taken = matches!(self.peek(), Some(Token::Symbol(found)) if *found == symbol);
        self.next += usize::from(taken);
        taken
    }

    /// Takes one of several symbols.
    fn one_of<T: Copy>(&mut self, symbols: &[(&str, T)]) -> Option<T> {
        symbols.iter().find(|(symbol, _)| self.take(symbol)).map(|(_, meaning)| *meaning)
    }

    fn close(&mut self, why: &str) -> Result<(), ExpressionError> {
        if self.take(")") { Ok(()) } else { self.expected(&format!("')' {why}")) }
    }

    /// Whether the next token continues a number.
    fn number_goes_on(&self) -> bool {
        matches!(self.peek(), Some(Token::Symbol(symbol)) if !["and", "or", ")"].contains(symbol))
    }

    fn end(&self) -> Result<(), ExpressionError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.expected("an operator (+ - * / < <= > >= == != and or) or the end"),
        }
    }

    /// What `inside` parses one level deeper. Only these levels recurse.
    fn deeper<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        if self.depth == MAX_DEPTH {
            return error(self.column(), format!("brackets and functions are nested more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let parsed = inside(self);
        self.depth -= 1;
        parsed
    }

    fn or(&mut self) -> Result<Condition, ExpressionError> {
        let mut left = self.and()?;
        while self.take("or") {
            left = Condition::Or(Box::new([left, self.and()?]));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Condition, ExpressionError> {
        let mut left = self.comparison()?;
        while self.take("and") {
            left = Condition::And(Box::new([left, self.comparison()?]));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Condition, ExpressionError> {
        let start = self.next;
        if !self.take("(") {
            return self.comparison_of_numbers();
        }
        // A bracket begins a condition or a number. Of two mistakes, the later one is the user's.
        match self.deeper(Self::or).and_then(|inner| self.close("to close the bracket").map(|()| inner)) {
            Ok(_) if self.number_goes_on() => error(self.column(), "expected a number, found a condition"),
            Ok(condition) => Ok(condition),
            Err(of_condition) => {
                self.next = start;
                let later = |of_number: ExpressionError| match of_number.column < of_condition.column {
                    true => of_condition,
                    false => of_number,
                };
                self.comparison_of_numbers().map_err(later)
            }
        }
    }

    fn comparison_of_numbers(&mut self) -> Result<Condition, ExpressionError> {
        let column = self.column();
        let left = self.sum()?;
        let operator = self.column();
        let Some(comparison) = self.one_of(&COMPARISONS) else {
            return error(column, "expected a condition, found a number: compare it by <, <=, >, >=, == or !=");
        };
        let compared = match self.peek() {
            Some(&Token::Text(text)) => {
                self.next += 1;
                text_is(left, comparison, text).or_else(|message| error(operator, message))?
            }
            _ => Condition::Compare(comparison, Box::new([left, self.sum()?])),
        };
        match self.one_of(&COMPARISONS) {
            None => Ok(compared),
            Some(_) => error(self.column(), "comparisons do not chain: write a < b and b < c"),
        }
    }

    fn sum(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.product()?;
        while let Some(operator) = self.one_of(&SUMS) {
            left = Expression::Arithmetic(operator, Box::new([left, self.product()?]));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, ExpressionError> {
        let mut left = self.factor()?;
        while let Some(operator) = self.one_of(&PRODUCTS) {
            left = Expression::Arithmetic(operator, Box::new([left, self.factor()?]));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, ExpressionError> {
        if self.take("(") {
            let inner = self.deeper(Self::sum)?;
            return self.close("to close the bracket").map(|()| inner);
        }
        let column = self.column();
        let factor = match self.peek() {
            Some(&Token::Quantity(value, unit)) => Expression::Quantity(value, unit),
            Some(&Token::Name(name)) => {
                self.next += 1;
                return if self.take("(") { self.function(name, column) } else { self.reference(name) };
            }
            _ => return self.expected("a number, a name, '(', abs, min or max"),
        };
        self.next += 1;
        Ok(factor)
    }

    fn reference(&mut self, name: &str) -> Result<Expression, ExpressionError> {
        let mut reference = Reference::own(name);
        if let Some(Token::Curve(curve)) = self.peek() {
            reference.curve = Some((*curve).to_owned());
            self.next += 1;
        }
        if self.take("@") {
            let Some(Token::Name(figure)) = self.peek() else {
                return self.expected("the id of a figure after '@', such as a8");
            };
            reference.figure = Some(figure.to_ascii_lowercase());
            self.next += 1;
        }
        Ok(Expression::Reference(reference))
    }

    /// A function, behind its opening bracket.
    fn function(&mut self, name: &str, column: usize) -> Result<Expression, ExpressionError> {
        let Some((_, function)) = FUNCTIONS.into_iter().find(|(known, _)| *known == name) else {
            return error(column, format!("there is no function '{name}': there are abs, min and max"));
        };
        let mut arguments = vec![self.deeper(Self::sum)?];
        while self.take(",") {
            arguments.push(self.deeper(Self::sum)?);
        }
        self.close("to end the arguments")?;
        match (function, arguments.len()) {
            (Function::Abs, 2..) => error(column, format!("abs takes one argument, not {}", arguments.len())),
            (Function::Min | Function::Max, 1) => error(column, format!("{name} takes two arguments or more")),
            _ => Ok(Expression::Function(function, arguments)),
        }
    }
}

fn text_is(left: Expression, comparison: Comparison, text: &str) -> Result<Condition, &'static str> {
    let wanted = match comparison {
        Comparison::Equal => true,
        Comparison::Unequal => false,
        _ => return Err("words have no order: compare them by == or !="),
    };
    match left {
        Expression::Reference(Reference { name: axis, curve: None, figure: None }) => {
            Ok(Condition::TextIs { axis, text: text.to_owned(), wanted })
        }
        _ => Err("only the name of an axis can be compared with a word"),
    }
}
