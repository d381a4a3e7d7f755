// Package sqlsink writes what informers deliver to PostgreSQL or SQLite.
package sqlsink
