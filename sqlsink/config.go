package sqlsink

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database a Sink writes to. Address is required; the zero value of everything
// else is a sensible default.
type Config struct {
	// Address is a URL like postgres://user@host:5432/name, or host=... dbname=..., with the
	// parameters of libpq and pool_max_conns, or sqlite:FILE. Parameters that tune the sockets of
	// libpq, or choose among hosts, are ignored. An error names one that is not supported, such as
	// sslcrl. A password is better in $PGPASSWORD or ~/.pgpass. No error repeats the address. A
	// pooler such as PgBouncer has to keep sessions, and SQLite has to have a file: a database in
	// memory has one connection.
	Address string
	// Columns are the columns beside the JSON. See Column. Default: none.
	Columns []Column
	// Shards is into how many parts the writers of this database divide each cluster. They may be
	// many then, with the same number, and each write must have an epoch (informer.WithEpoch), as
	// the units of fleet/shards have. It needs PostgreSQL. A Target whose unit is no part of so many
	// cannot be read or written; a unit without a shard is one of a group that is not divided.
	// Default: 0, which means that there is no other writer.
	Shards int
}

// sqliteScheme is before the path of a file in an address.
const sqliteScheme = "sqlite:"

// postgresForm is that of a URL, or of keyword=value.
var postgresForm = regexp.MustCompile(`^\s*(postgres(ql)?://|[^:/@. =]+\s*=)`)

// Name returns the name of a database for messages: the address without a password. The error says
// what is wrong with the address, and does not repeat it.
func Name(address string) (string, error) {
	_, name, err := parseAddress(address)
	return name, err
}

// parseAddress reads an address: of a PostgreSQL database, or of a SQLite file, whose name is its path.
func parseAddress(address string) (postgres *pgxpool.Config, name string, err error) {
	file, isFile := strings.CutPrefix(address, sqliteScheme)
	switch {
	case isFile && (file == ":memory:" || file == "file::memory:"):
		return nil, "", errors.New("a SQLite database in memory has one connection, and this program needs several: name a file, which may be in memory, in /dev/shm for instance")
	case isFile && postgresForm.MatchString(file):
		return nil, "", errors.New(sqliteScheme + " is before the path of a file, and this looks like the address of a PostgreSQL database; write ./ before the name of a file that has = in it " +
			"(it is not repeated here, for it may have a password in it)")
	case isFile && file != "":
		return nil, file, nil
	case isFile:
	case postgresForm.MatchString(address):
		postgres, err = pgxpool.ParseConfig(strings.TrimSpace(address))
		if err != nil || postgresForm.MatchString(postgres.ConnConfig.Database) {
			return nil, "", errors.New("the address cannot be read as that of a PostgreSQL database, like postgres://user@host:5432/name " +
				"(it is not repeated here, for it may have a password in it; in a URL, one needs % and two digits for each of / ? # @ : and %)")
		}
		if err := adoptLibpq(&postgres.ConnConfig.Config); err != nil {
			return nil, "", err
		}
		return postgres, nameOf(postgres.ConnConfig), nil
	}
	return nil, "", errors.New("the address is none of a database: it must be like postgres://user@host:5432/name, or host=... dbname=..., or " +
		sqliteScheme + "FILE (it is not repeated here, for it may have a password in it)")
}

// nameOf is the address of a database, without a password.
func nameOf(config *pgx.ConnConfig) string {
	name := url.URL{Scheme: "postgres", Path: "/" + config.Database}
	if config.User != "" {
		name.User = url.User(config.User)
	}
	if strings.HasPrefix(config.Host, "/") {
		name.RawQuery = url.Values{"host": {config.Host}}.Encode()
	} else {
		name.Host = fmt.Sprintf("%s:%d", config.Host, config.Port)
	}
	return name.String()
}
