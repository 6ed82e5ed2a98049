//! Reports for people: the table of tuned selections and its JSON form.
