package main

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// sqliteScheme is before the path of a file in --database.
const sqliteScheme = "sqlite:"

var (
	errAddress = errors.New("--database: it is no address of a database: it must be like postgres://user@host:5432/name, or host=... dbname=..., or " +
		sqliteScheme + "FILE (it is not repeated here, for it may have a password in it)")
	errPostgresAddress = errors.New("--database: it cannot be read as the address of a PostgreSQL database, like postgres://user@host:5432/name " +
		"(it is not repeated here, for it may have a password in it; in a URL, one needs % and two digits for each of / ? # @ : and %)")
	errDatabaseFlag    = errors.New("--db: it is the file of a SQLite database: the address of a PostgreSQL database goes to --database")
	errUnknownArgument = errors.New("unknown argument: the address of a database goes to --database (it is not repeated here, for it may have a password in it)")
)

// parseAddress reads the value of --database: a PostgreSQL database, or the path of a SQLite file.
// Its errors do not show the value, nor a part of it.
func parseAddress(address string) (postgres *pgxpool.Config, file string, err error) {
	file, isFile := strings.CutPrefix(address, sqliteScheme)
	switch {
	case isFile && file != "":
		return nil, file, nil
	case isPostgresURL(address), isKeywords(address):
		if postgres, err = pgxpool.ParseConfig(address); err != nil {
			return nil, "", errPostgresAddress
		}
		return postgres, "", nil
	}
	return nil, "", errAddress
}

func isPostgresURL(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// mayHavePassword reports whether an argument may be the address of a database, or a part of one.
func mayHavePassword(argument string) bool {
	return strings.Contains(argument, "://") || isKeywords(argument)
}

// isKeywords reports whether an address has the form keyword=value.
func isKeywords(address string) bool {
	keyword, _, found := strings.Cut(strings.TrimSpace(address), "=")
	return found && !strings.ContainsAny(keyword, ":/@. ")
}
