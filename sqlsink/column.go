package sqlsink

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rvinformer/informer/internal/leaf/fieldpath"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Column is a column of the table objects that the database itself computes from the JSON of each
// row, so that the two never differ, whatever writes the row. It is NULL where the object lacks the
// field. In PostgreSQL it is a generated column that is stored: to add it rewrites the table, which
// is locked meanwhile. In SQLite it takes no room. Both can have indexes.
//
// A row that is there, and does not fit a new column, is removed when Open adds the column, and logged.
// Its resource is listed anew, so that the handler refuses the object as any other that does not fit.
// Where other writers run meanwhile, they write it when the object changes.
//
// A column stays in the database until it is dropped there: ALTER TABLE objects DROP COLUMN. Open
// refuses one of the same name that is defined otherwise.
type Column struct {
	// Name is that of the column, and of no other one: small letters, digits and _.
	Name string
	// Path is where the value is in the object: "spec.nodeName". A dot within a name is written
	// `\.`, as in `metadata.labels.app\.kubernetes\.io/name`. A number is an index of an array:
	// "spec.containers.0.image".
	Path string
	// Type is what the column has. An object whose value is of another type is refused, and so is a
	// FailedEvent. Only a Timestamp of SQLite is NULL for a text that is no time. Default: Text.
	Type ColumnType
	// Resources are those whose objects have the column; others have NULL. Default: all.
	Resources []schema.GroupResource
}

// ColumnType is what a column has.
type ColumnType string

// The types of columns.
const (
	// Text is a string as it is, and any other value as JSON: text.
	Text ColumnType = "text"
	// Integer is a whole number of 64 bits: bigint, INTEGER in SQLite.
	Integer ColumnType = "integer"
	// Number is a floating-point number: double precision, REAL in SQLite.
	Number ColumnType = "number"
	// Boolean is boolean, and the INTEGER 0 or 1 in SQLite.
	Boolean ColumnType = "boolean"
	// Timestamp is a time, such as metadata.creationTimestamp: timestamptz. In SQLite, it is a TEXT
	// in UTC with milliseconds, which sorts, and which the functions of dates and times take. Both
	// refuse "now", whose time is that of the write.
	Timestamp ColumnType = "timestamp"
	// JSON is any value: jsonb, and a TEXT in SQLite.
	JSON ColumnType = "json"
)

var (
	columnName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

	// ownColumns are those that the table objects has by itself.
	ownColumns = []string{"cluster", "group", "version", "resource", "namespace", "name", "uid", "resource_version",
		"namespace_hash", "uid_hash", "object", "exact"}

	// columnTypes are the types of both databases, and the values for a path. A column that is there is
	// compared by its definition: another text makes another column.
	columnTypes = map[ColumnType]columnType{
		Text:      {"text", "(object #>> %s)", "TEXT", "object ->> %s"},
		Integer:   {"bigint", "(object #>> %s)::bigint", "INTEGER", "object ->> %s"},
		Number:    {"double precision", "(object #>> %s)::double precision", "REAL", "object ->> %s"},
		Boolean:   {"boolean", "(object #>> %s)::boolean", "INTEGER", "object ->> %s"},
		Timestamp: {"timestamptz", "sqlsink_timestamp((object #>> %s))", "TEXT", "strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', object ->> %s)"},
		JSON:      {"jsonb", "(object #> %s)", "TEXT", "object -> %s"},
	}
)

// check says what is wrong with the column behind others.
func (c Column) check(others []Column) error {
	switch {
	case !columnName.MatchString(c.Name):
		return fmt.Errorf("column %q: a name has small letters, digits and _", c.Name)
	case slices.Contains(ownColumns, c.Name):
		return fmt.Errorf("column %s: the table has another one of this name", c.Name)
	case slices.ContainsFunc(others, func(o Column) bool { return o.Name == c.Name }):
		return fmt.Errorf("column %s: there are two columns of this name", c.Name)
	case !fieldpath.Valid(c.Path), strings.ContainsAny(c.Path, `"`):
		return fmt.Errorf("column %s: %q is no path", c.Name, c.Path)
	case c.kind().postgres == "":
		return fmt.Errorf("column %s: %q is no type", c.Name, c.Type)
	}
	return nil
}

type columnType struct{ postgres, postgresValue, sqlite, sqliteValue string }

func (c Column) kind() columnType { return columnTypes[cmp.Or(c.Type, Text)] }

// postgres is the definition of the column for a table whose column object is jsonb.
func (c Column) postgres() string {
	return fmt.Sprintf(`"%s" %s GENERATED ALWAYS AS (%s) STORED`, c.Name, c.kind().postgres, c.postgresValue())
}

func (c Column) postgresValue() string {
	names := fieldpath.Split(c.Path)
	for i, name := range names {
		names[i] = quote(name)
	}
	return c.within(fmt.Sprintf(c.kind().postgresValue, "ARRAY["+strings.Join(names, ", ")+"]"))
}

// sqlite is the definition of the column for a table whose column object is JSON text. SQLite reads
// no JSON that is nested too deep.
func (c Column) sqlite() string {
	return fmt.Sprintf(`"%s" %s GENERATED ALWAYS AS (%s) VIRTUAL`, c.Name, c.kind().sqlite, c.sqliteValue())
}

func (c Column) sqliteValue() string {
	return c.within("CASE WHEN json_valid(object) THEN " + fmt.Sprintf(c.kind().sqliteValue, sqlitePath(c.Path)) + " END")
}

// sqlitePath is a path as a literal of SQLite.
func sqlitePath(of string) string {
	path := "$"
	for _, name := range fieldpath.Split(of) {
		if strings.Trim(name, "0123456789") == "" {
			path += "[" + name + "]"
		} else {
			path += `."` + name + `"`
		}
	}
	return quote(path)
}

// sqliteMisfit is an expression of SQLite that tells whether the column refuses a row. It looks at the
// type of the value as a column of that type has it, and at words for the time of the write.
func (c Column) sqliteMisfit() string {
	path := sqlitePath(c.Path)
	if c.Type == Timestamp {
		return c.within(`CASE WHEN json_valid(object) THEN lower(object ->> ` + path + `) IN ('now', 'subsec', 'subsecond') ELSE 0 END`)
	}
	return "0"
}

// within is an expression that has the value in the rows of the column's resources only.
func (c Column) within(value string) string {
	if len(c.Resources) == 0 {
		return value
	}
	var is []string
	for _, r := range c.Resources {
		is = append(is, fmt.Sprintf(`"group" = %s AND resource = %s`, quote(r.Group), quote(r.Resource)))
	}
	return "CASE WHEN " + strings.Join(is, " OR ") + " THEN " + value + " END"
}

// quote is a text as a literal of SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
