-- What mirror made before it counted transactions.
CREATE TABLE objects (
	cluster          text COLLATE "C" NOT NULL,
	"group"          text COLLATE "C" NOT NULL,
	version          text COLLATE "C" NOT NULL,
	resource         text COLLATE "C" NOT NULL,
	namespace        text COLLATE "C" NOT NULL,
	name             text COLLATE "C" NOT NULL,
	uid              text COLLATE "C" NOT NULL,
	resource_version text COLLATE "C" NOT NULL,
	namespace_hash   bigint NOT NULL,
	uid_hash         bigint NOT NULL,
	object           jsonb NOT NULL,
	exact            text,
	PRIMARY KEY (cluster, "group", resource, namespace, name, uid)
		INCLUDE (version, resource_version, namespace_hash, uid_hash)
);
CREATE TABLE checkpoints (
	cluster  text COLLATE "C" NOT NULL,
	"group"  text COLLATE "C" NOT NULL,
	resource text COLLATE "C" NOT NULL,
	shard    text COLLATE "C" NOT NULL,
	part     integer NOT NULL,
	version  text COLLATE "C" NOT NULL,
	server   text NOT NULL,
	data     bytea NOT NULL,
	PRIMARY KEY (cluster, "group", resource, shard, part)
);
ALTER TABLE checkpoints ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE units (
	unit  text COLLATE "C" PRIMARY KEY,
	epoch bigint NOT NULL
);
COMMENT ON TABLE objects IS 'rvinformer mirror, format 1';
INSERT INTO objects VALUES ('here', '', 'v1', 'pods', 'ns', 'a', 'a', '10', 0, 0, '{"metadata": {"name": "a", "namespace": "ns"}, "spec": {"nodeName": "n1"}}', NULL);
INSERT INTO checkpoints VALUES ('here', '', 'pods', '', 0, 'v1', 'https://server', 'kept');
INSERT INTO units VALUES ('', 5), ('here/all', 7);
