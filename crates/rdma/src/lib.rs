//! Transfer engines: registration of memory and submission of checked plans.
//!
//! Addresses enter here and only here, from live registrations.
