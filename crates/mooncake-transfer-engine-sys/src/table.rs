/// Declares a struct of function pointers and how a library fills it. Name and type of a symbol
/// stand side by side in it: that they belong together is the one claim no compiler checks, and
/// the one to check against the header.
macro_rules! function_table {
    (
        $(#[$outer:meta])*
        pub struct $table:ident {
            required {
                $($(#[$required_doc:meta])* $required_symbol:literal $required:ident: $required_type:ty;)*
            }
            optional {
                $($(#[$optional_doc:meta])* $optional_symbol:literal $optional:ident: $optional_type:ty;)*
            }
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy)]
        pub struct $table {
            $($(#[$required_doc])* pub $required: $required_type,)*
            $($(#[$optional_doc])* pub $optional: Option<$optional_type>,)*
        }

        impl $table {
            pub(crate) fn load(object: &$crate::object::Object) -> Result<Self, $crate::LoadError> {
                $(
                    // SAFETY: the table gives the symbol the header's type.
                    let $required = unsafe { object.function::<$required_type>($required_symbol) }?;
                )*
                $(
                    // SAFETY: the table gives the symbol the header's type.
                    let $optional = unsafe { object.function::<$optional_type>($optional_symbol) }.ok();
                )*
                Ok(Self { $($required,)* $($optional,)* })
            }
        }
    };
}

pub(crate) use function_table;
