-- What mirror made before there was this package.
CREATE TABLE IF NOT EXISTS objects (
	cluster          TEXT NOT NULL,
	"group"          TEXT NOT NULL,
	version          TEXT NOT NULL,
	resource         TEXT NOT NULL,
	namespace        TEXT NOT NULL,
	name             TEXT NOT NULL,
	uid              TEXT NOT NULL,
	resource_version TEXT NOT NULL,
	object           TEXT NOT NULL,
	PRIMARY KEY (cluster, "group", resource, namespace, name)
) STRICT;
CREATE INDEX IF NOT EXISTS objects_versions
	ON objects (cluster, "group", resource, version, namespace, name, uid, resource_version);
CREATE TABLE IF NOT EXISTS checkpoints (
	cluster    TEXT NOT NULL,
	"group"    TEXT NOT NULL,
	resource   TEXT NOT NULL,
	part       INTEGER NOT NULL,
	version    TEXT NOT NULL,
	server     TEXT NOT NULL,
	data       BLOB NOT NULL,
	PRIMARY KEY (cluster, "group", resource, part)
) STRICT;
PRAGMA application_id = 0x6d697272;
INSERT INTO objects VALUES ('here', '', 'v1', 'pods', 'ns', 'a', 'a', '10', '{"metadata":{"name":"a","namespace":"ns"},"spec":{"nodeName":"n1"}}');
INSERT INTO checkpoints VALUES ('here', '', 'pods', 0, 'v1', 'https://server', x'6b657074');
