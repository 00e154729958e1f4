//! JSON as this library writes it: a float that JSON cannot express is an error, where serde_json writes `null`.

use serde::ser::{self, Error, Serialize, Serializer};
use serde_json::value::RawValue;
use std::cell::Cell;

pub(crate) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Strict(value))
}

pub(crate) fn to_raw<T: Serialize + ?Sized>(value: &T) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(&Strict(value))
}

/// Wraps each value that is serialized, each serializer, and what that makes.
struct Strict<T>(T);

impl<T: Serialize + ?Sized> Serialize for Strict<&T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let _level = Level::enter()?;
        self.0.serialize(Strict(to))
    }
}

/// Deeper data is refused: it would use up the thread's stack.
const DEEPEST: usize = 500;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How deep the value is that is serialized on this thread.
struct Level;

impl Level {
    fn enter<E: Error>() -> Result<Self, E> {
        if DEPTH.get() == DEEPEST {
            return Err(E::custom(format_args!(
                "it is nested deeper than {DEEPEST}"
            )));
        }
        DEPTH.set(DEPTH.get() + 1);
        Ok(Level)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

fn known<E: Error>(value: f64) -> Result<(), E> {
    match value.is_finite() {
        true => Ok(()),
        false => Err(E::custom(format_args!(
            "JSON does not know the number {value}"
        ))),
    }
}

macro_rules! pass {
    ($($method:ident($kind:ty)),* $(,)?) => {$(
        fn $method(self, value: $kind) -> Result<S::Ok, S::Error> {
            self.0.$method(value)
        }
    )*};
}

macro_rules! open {
    ($($method:ident($($name:ident: $kind:ty),*) -> $made:ident),* $(,)?) => {$(
        fn $method(self, $($name: $kind),*) -> Result<Self::$made, S::Error> {
            self.0.$method($($name),*).map(Strict)
        }
    )*};
}

impl<S: Serializer> Serializer for Strict<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Strict<S::SerializeSeq>;
    type SerializeTuple = Strict<S::SerializeTuple>;
    type SerializeTupleStruct = Strict<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Strict<S::SerializeTupleVariant>;
    type SerializeMap = Strict<S::SerializeMap>;
    type SerializeStruct = Strict<S::SerializeStruct>;
    type SerializeStructVariant = Strict<S::SerializeStructVariant>;

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        known(value.into())?;
        self.0.serialize_f32(value)
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        known(value)?;
        self.0.serialize_f64(value)
    }

    pass! {
        serialize_bool(bool), serialize_i8(i8), serialize_i16(i16), serialize_i32(i32), serialize_i64(i64),
        serialize_i128(i128), serialize_u8(u8), serialize_u16(u16), serialize_u32(u32), serialize_u64(u64),
        serialize_u128(u128), serialize_char(char), serialize_str(&str), serialize_bytes(&[u8]),
        serialize_unit_struct(&'static str),
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_none()
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Strict(value))
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Strict(value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0
            .serialize_newtype_variant(name, index, variant, &Strict(value))
    }

    open! {
        serialize_seq(length: Option<usize>) -> SerializeSeq,
        serialize_tuple(length: usize) -> SerializeTuple,
        serialize_tuple_struct(name: &'static str, length: usize) -> SerializeTupleStruct,
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, length: usize)
            -> SerializeTupleVariant,
        serialize_map(length: Option<usize>) -> SerializeMap,
        serialize_struct(name: &'static str, length: usize) -> SerializeStruct,
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, length: usize)
            -> SerializeStructVariant,
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! parts {
    ($($of:ident: $($method:ident($($key:ident: $kind:ty)?)),*;)*) => {$(
        impl<S: ser::$of> ser::$of for Strict<S> {
            type Ok = S::Ok;
            type Error = S::Error;

            $(fn $method<T: Serialize + ?Sized>(&mut self, $($key: $kind,)? value: &T) -> Result<(), S::Error> {
                self.0.$method($($key,)? &Strict(value))
            })*

            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element();
    SerializeTuple: serialize_element();
    SerializeTupleStruct: serialize_field();
    SerializeTupleVariant: serialize_field();
    SerializeMap: serialize_key(), serialize_value();
    SerializeStruct: serialize_field(key: &'static str);
    SerializeStructVariant: serialize_field(key: &'static str);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(serde::Serialize, Clone)]
    enum Shape {
        Unit,
        One(f64),
        Two(f64, f64),
        Named { x: f32, y: Option<f64> },
    }

    #[derive(serde::Serialize)]
    struct Pair(i128, Box<RawValue>);

    #[derive(serde::Serialize)]
    struct All {
        shapes: Vec<Shape>,
        by_name: BTreeMap<String, (f64, char)>,
        pair: Pair,
        nothing: (),
        value: serde_json::Value,
    }

    fn all(shapes: &[Shape], x: f64) -> All {
        All {
            shapes: shapes.to_vec(),
            by_name: [("a".into(), (x, 'b'))].into(),
            pair: Pair(-1, serde_json::from_str("[1.50]").expect("it is JSON")),
            nothing: (),
            value: serde_json::json!({"a": [null, 1.5, "x"]}),
        }
    }

    #[test]
    fn what_json_knows_is_written_as_by_serde_json() {
        let shapes = |x: f64| {
            let x32 = x as f32;
            [
                Shape::Unit,
                Shape::One(x),
                Shape::Two(1.0, x),
                Shape::Named { x: x32, y: None },
                Shape::Named { x: 1.0, y: Some(x) },
            ]
        };
        let fine = all(&shapes(0.1), f64::MAX);
        let json = to_vec(&fine).expect("it is written");
        assert_eq!(json, serde_json::to_vec(&fine).expect("it is written"));
        assert_eq!(to_raw(&fine).expect("it is written").get().as_bytes(), json);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for shape in shapes(bad).iter().skip(1) {
                let said = to_vec(&all(std::slice::from_ref(shape), 1.0)).map(|_| ());
                let said = said.expect_err("it is no JSON").to_string();
                assert!(said.contains("does not know"), "{said}");
            }
            assert!(to_vec(&all(&[], bad)).is_err() && to_raw(&bad).is_err());
        }
    }
}
