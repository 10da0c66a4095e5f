//! Recursive descent from tokens to a tree. `or` binds least, then `and`, comparison, sum, product, sign.

use super::lexer::{Token, error, tokens};
use super::{Comparison, ExpressionError, Function, Kind, MAX_DEPTH, Node, Operator, Reference};

type Parsed = Result<(Node, Kind), ExpressionError>;

pub(super) fn parse(text: &str) -> Parsed {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, end: text.chars().count() + 1 };
    let parsed = parser.or()?;
    match parser.peek() {
        None => Ok(parsed),
        Some(token) => Err(parser.here(format!(
            "{} is unexpected: expected an operator (+ - * / < <= > >= == != and or) or the end",
            token.describe()
        ))),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    /// The column after the last character.
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn column(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(column, _)| *column)
    }

    fn here(&self, message: String) -> ExpressionError {
        error(self.column(), message)
    }

    fn advance(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.next += 1;
        token
    }

    fn take(&mut self, wanted: &Token) -> bool {
        let taken = self.peek() == Some(wanted);
        self.next += usize::from(taken);
        taken
    }

    fn expect(&mut self, wanted: &Token, why: &str) -> Result<(), ExpressionError> {
        if self.take(wanted) {
            return Ok(());
        }
        let found = self.peek().map_or_else(|| "the end".to_owned(), Token::describe);
        Err(self.here(format!("expected {} {why}, found {found}", wanted.describe())))
    }

    fn or(&mut self) -> Parsed {
        self.chain(&Token::Or, Self::and, Node::Or)
    }

    fn and(&mut self) -> Parsed {
        self.chain(&Token::And, Self::comparison, Node::And)
    }

    /// `part (link part)*`. With a link, all parts must be conditions.
    fn chain(&mut self, link: &Token, part: fn(&mut Self) -> Parsed, join: fn(Box<Node>, Box<Node>) -> Node) -> Parsed {
        let mut column = self.column();
        let (mut left, kind) = part(self)?;
        let mut joined = (kind, column);
        while self.take(link) {
            condition(joined.0, joined.1)?;
            column = self.column();
            let (right, kind) = part(self)?;
            condition(kind, column)?;
            left = join(Box::new(left), Box::new(right));
            joined = (Kind::Condition, column);
        }
        Ok((left, joined.0))
    }

    fn comparison(&mut self) -> Parsed {
        let column = self.column();
        let (left, kind) = self.sum()?;
        let Some(&Token::Compare(comparison)) = self.peek() else { return Ok((left, kind)) };
        number(kind, column)?;
        let operator_column = self.column();
        self.next += 1;
        let compared = if let Some(Token::Text(text)) = self.peek() {
            let node = text_comparison(&left, comparison, text.clone(), operator_column)?;
            self.next += 1;
            node
        } else {
            let column = self.column();
            let (right, kind) = self.sum()?;
            number(kind, column)?;
            Node::Compare(comparison, Box::new(left), Box::new(right))
        };
        if let Some(Token::Compare(_)) = self.peek() {
            return Err(self.here("comparisons do not chain: write a < b and b < c".to_owned()));
        }
        Ok((compared, Kind::Condition))
    }

    fn sum(&mut self) -> Parsed {
        self.operations(Self::product, |operator| matches!(operator, Operator::Add | Operator::Subtract))
    }

    fn product(&mut self) -> Parsed {
        self.operations(Self::factor, |operator| matches!(operator, Operator::Multiply | Operator::Divide))
    }

    fn operations(&mut self, part: fn(&mut Self) -> Parsed, of_this_level: fn(Operator) -> bool) -> Parsed {
        let column = self.column();
        let (mut left, mut kind) = part(self)?;
        while let Some(&Token::Arithmetic(operator)) = self.peek() {
            if !of_this_level(operator) {
                break;
            }
            number(kind, column)?;
            self.next += 1;
            let column = self.column();
            let (right, right_kind) = part(self)?;
            number(right_kind, column)?;
            left = Node::Arithmetic(operator, Box::new(left), Box::new(right));
            kind = Kind::Number;
        }
        Ok((left, kind))
    }

    /// A sign, a number, a name, a function or brackets. Only this level recurses, so it counts the depth.
    fn factor(&mut self) -> Parsed {
        if self.depth == MAX_DEPTH {
            return Err(self.here(format!("brackets, signs and functions are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let parsed = self.factor_inside();
        self.depth -= 1;
        parsed
    }

    fn factor_inside(&mut self) -> Parsed {
        let column = self.column();
        match self.advance() {
            Some(Token::Number(value, unit)) => Ok((Node::Number(value, unit), Kind::Number)),
            Some(Token::Arithmetic(Operator::Subtract)) => {
                let column = self.column();
                let (inner, kind) = self.factor()?;
                number(kind, column)?;
                Ok((Node::Negative(Box::new(inner)), Kind::Number))
            }
            Some(Token::Open) => {
                let inner = self.or()?;
                self.expect(&Token::Close, "to close the bracket")?;
                Ok(inner)
            }
            Some(Token::Name(name)) if self.peek() == Some(&Token::Open) => self.function(&name, column),
            Some(Token::Name(name)) => Ok((Node::Reference(self.reference(name)?), Kind::Number)),
            found => {
                let found = found.map_or_else(|| "the end".to_owned(), |token| token.describe());
                Err(error(column, format!("expected a number, a name, '(', abs, min or max, found {found}")))
            }
        }
    }

    fn reference(&mut self, name: String) -> Result<Reference, ExpressionError> {
        let mut reference = Reference { name, curve: None, figure: None };
        if let Some(Token::Curve(curve)) = self.peek() {
            reference.curve = Some(curve.clone());
            self.next += 1;
        }
        if self.take(&Token::At) {
            match self.advance() {
                Some(Token::Name(figure)) => reference.figure = Some(figure.to_ascii_lowercase()),
                _ => {
                    self.next -= 1;
                    return Err(self.here("expected the id of a figure after '@', such as a8".to_owned()));
                }
            }
        }
        Ok(reference)
    }

    fn function(&mut self, name: &str, column: usize) -> Parsed {
        let function = match name {
            "abs" => Function::Abs,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return Err(error(column, format!("there is no function '{name}': there are abs, min and max"))),
        };
        self.expect(&Token::Open, "to begin the arguments")?;
        let mut arguments = Vec::new();
        loop {
            let column = self.column();
            let (argument, kind) = self.sum()?;
            number(kind, column)?;
            arguments.push(argument);
            if !self.take(&Token::Comma) {
                break;
            }
        }
        self.expect(&Token::Close, "to end the arguments")?;
        match (function, arguments.len()) {
            (Function::Abs, 1) => {}
            (Function::Abs, n) => return Err(error(column, format!("abs takes one argument, not {n}"))),
            (_, 1) => return Err(error(column, format!("{name} takes two arguments or more"))),
            _ => {}
        }
        Ok((Node::Function(function, arguments), Kind::Number))
    }
}

fn text_comparison(left: &Node, comparison: Comparison, text: String, column: usize) -> Result<Node, ExpressionError> {
    let wanted = match comparison {
        Comparison::Equal => true,
        Comparison::Unequal => false,
        _ => return Err(error(column, "words have no order: compare them by == or !=")),
    };
    match left {
        Node::Reference(Reference { name, curve: None, figure: None }) => {
            Ok(Node::TextIs { axis: name.clone(), text, wanted })
        }
        _ => Err(error(column, "only the name of an axis can be compared with a word")),
    }
}

fn number(kind: Kind, column: usize) -> Result<(), ExpressionError> {
    match kind {
        Kind::Number => Ok(()),
        Kind::Condition => Err(error(column, "expected a number, found a condition")),
    }
}

fn condition(kind: Kind, column: usize) -> Result<(), ExpressionError> {
    match kind {
        Kind::Condition => Ok(()),
        Kind::Number => {
            Err(error(column, "expected a condition, found a number: compare it by <, <=, >, >=, == or !="))
        }
    }
}
