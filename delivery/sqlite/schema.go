package sqlite

// version is the version of the schema. A file with a newer one is refused, and one with an older one is upgraded.
const version = 7

// applicationID marks a file as weir's deliveries ("weir" in ASCII).
const applicationID = 0x77656972

// Times are milliseconds since 1970. place orders the deliveries of one order key: a new or redriven one gets a value
// above all that are in use. counts is updated in the transactions that change delivery, so that no query needs to
// count rows.
//
// The partial indexes contain only deliveries that wait or have a lease. So deliveries that have ended do not slow down
// claims.
const schema = `
CREATE TABLE delivery (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	id TEXT NOT NULL UNIQUE,
	tenant TEXT NOT NULL,
	holder TEXT NOT NULL,
	upstream TEXT NOT NULL,
	status TEXT NOT NULL,
	due INTEGER NOT NULL,
	not_before INTEGER NOT NULL,
	order_key TEXT,
	place INTEGER NOT NULL,
	idem_key TEXT,
	fingerprint BLOB NOT NULL,
	correlation TEXT NOT NULL,
	attempts INTEGER NOT NULL DEFAULT 0,
	starts INTEGER NOT NULL DEFAULT 0,
	stalls INTEGER NOT NULL DEFAULT 0,
	series INTEGER NOT NULL DEFAULT 1,
	fence INTEGER NOT NULL DEFAULT 0,
	worker TEXT NOT NULL DEFAULT '',
	lease INTEGER,
	began INTEGER,
	accepted INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	expires INTEGER,
	reason TEXT NOT NULL DEFAULT '',
	detail TEXT NOT NULL DEFAULT ''
);
CREATE TABLE request (
	seq INTEGER PRIMARY KEY,
	method TEXT NOT NULL,
	path TEXT NOT NULL,
	query TEXT NOT NULL,
	header TEXT NOT NULL,
	body BLOB NOT NULL
);
CREATE TABLE attempt (
	seq INTEGER NOT NULL,
	n INTEGER NOT NULL,
	series INTEGER NOT NULL,
	began INTEGER NOT NULL,
	took INTEGER NOT NULL,
	status INTEGER NOT NULL,
	class TEXT NOT NULL,
	code TEXT NOT NULL,
	answer BLOB NOT NULL,
	counted INTEGER NOT NULL,
	PRIMARY KEY (seq, n)
) WITHOUT ROWID;
CREATE TABLE counts (
	upstream TEXT NOT NULL,
	status TEXT NOT NULL,
	n INTEGER NOT NULL,
	PRIMARY KEY (upstream, status)
) WITHOUT ROWID;
CREATE INDEX due ON delivery(upstream, due, seq) WHERE status = 'queued';
CREATE INDEX lease ON delivery(lease) WHERE lease IS NOT NULL;
CREATE INDEX keyed ON delivery(upstream, tenant, order_key, place)
	WHERE order_key IS NOT NULL AND status IN ('created', 'queued', 'processing');
CREATE UNIQUE INDEX idem ON delivery(upstream, tenant, idem_key) WHERE idem_key IS NOT NULL;
CREATE INDEX expiry ON delivery(expires) WHERE expires IS NOT NULL AND status IN ('created', 'queued');
CREATE INDEX ended ON delivery(changed) WHERE status = 'completed';
CREATE INDEX died ON delivery(upstream, changed) WHERE status = 'failed';
CREATE INDEX gone ON delivery(changed) WHERE status = 'failed';
CREATE INDEX waits ON delivery(upstream, seq) WHERE status IN ('created', 'queued');
CREATE INDEX dead ON delivery(seq) WHERE status = 'failed';
`

// upgrades contains the changes of each version from the second on:
//
//   - delivery.stops is 1 if a dead letter blocks later deliveries of its order key.
//   - past contains idempotency keys of deleted deliveries, with their results.
//   - answer contains idempotency keys of direct calls, with their first response. status is 0 while there is none.
//   - token_ends is when the caller's token expires. For older rows the origin of expires is unknown, so the upgrade
//     treats it as a token's.
//   - told is the latest series whose callback is stored. It is NULL if there is no callback.
//   - request.large refers to a body that is stored outside the record.
//   - delivery.size is the size of the request in bytes, including such a body. Rows from before version 7 do not
//     include it.
var upgrades = [version - 1]string{`
ALTER TABLE delivery ADD COLUMN stops INTEGER NOT NULL DEFAULT 0;
DROP INDEX keyed;
CREATE INDEX keyed ON delivery(upstream, tenant, order_key, place) WHERE ` + inLine + `;
CREATE TABLE past (
	upstream TEXT NOT NULL,
	tenant TEXT NOT NULL,
	idem_key TEXT NOT NULL,
	id TEXT NOT NULL,
	fingerprint BLOB NOT NULL,
	status TEXT NOT NULL,
	reason TEXT NOT NULL,
	detail TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	accepted INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	until INTEGER NOT NULL,
	PRIMARY KEY (upstream, tenant, idem_key)
) WITHOUT ROWID;
CREATE INDEX past_until ON past(until);
`, `
CREATE TABLE answer (
	upstream TEXT NOT NULL,
	tenant TEXT NOT NULL,
	idem_key TEXT NOT NULL,
	fingerprint BLOB NOT NULL,
	owner TEXT NOT NULL,
	until INTEGER NOT NULL,
	status INTEGER NOT NULL,
	header TEXT NOT NULL,
	body BLOB NOT NULL,
	large INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	UNIQUE (upstream, tenant, idem_key)
);
CREATE INDEX answer_expires ON answer(expires);
CREATE INDEX answer_open ON answer(until) WHERE status = 0;
`, `
ALTER TABLE delivery ADD COLUMN token_ends INTEGER;
UPDATE delivery SET token_ends = expires;
CREATE INDEX held ON delivery(holder, seq) WHERE holder <> '';
`, `
ALTER TABLE delivery ADD COLUMN callback TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN tells TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN told INTEGER;
CREATE INDEX owing ON delivery(changed, seq) WHERE ` + owes + `;
`, `
ALTER TABLE request ADD COLUMN large TEXT NOT NULL DEFAULT '';
`, `
ALTER TABLE delivery ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
UPDATE delivery SET size = coalesce((SELECT length(path) + length(query) + length(header) + length(body) FROM request r WHERE r.seq = delivery.seq), 0);
CREATE INDEX stored ON delivery(tenant, size);
`}

// owes selects deliveries that have ended and whose callback is not stored yet. The change that ends a delivery makes
// this true. It must match the condition of the index word for word.
const owes = "told IS NOT NULL AND told < series AND status IN ('completed', 'failed')"

// inLine selects the deliveries that occupy a position of an order key. It must match the condition of the index word
// for word, so that SQLite uses the index.
const inLine = "order_key IS NOT NULL AND (status IN ('created', 'queued', 'processing') OR status = 'failed' AND stops = 1)"
