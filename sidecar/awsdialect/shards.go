package awsdialect

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/awsx/wire"
	"github.com/seed1158cd35/weir/httpx"
)

var _ httpx.Pather = (*exchange)(nil)

// Path implements httpx.Pather.
func (x *exchange) Path() string { return x.path }

// copySource is the header with the object to copy from.
const copySource = "X-Amz-Copy-Source"

// elsewhere lists operations that have keys in their request or response bodies, or that read many prefixes. To
// spread their keys, weir would have to rewrite the bodies.
var elsewhere = map[string]bool{
	"ListObjects": true, "ListObjectsV2": true, "ListObjectVersions": true, "ListMultipartUploads": true, "DeleteObjects": true,
	"PostObject": true, "RenameObject": true,
}

// spread adds the prefix of the shard to the key of an S3 request, and to the key of an object to copy from. full is
// the raw path, including the upstream's path.
func (x *exchange) spread(r *http.Request, full string) error {
	s := x.d.shards
	if s == nil || x.op.Protocol != wire.S3 || x.op.Bucket == "" {
		return nil
	}
	switch {
	case x.plan.AsIs():
		return &resign.RequestError{What: "its signature is for another key, because aws.shards spreads keys over prefixes: have the client sign the request"}
	case elsewhere[x.op.Name]:
		return &resign.RequestError{What: x.op.Name + " is not available with aws.shards, which spreads keys over prefixes: request each prefix"}
	case x.op.Name == "":
		return &resign.RequestError{What: "its operation is unknown, and aws.shards spreads keys over prefixes"}
	case x.op.Key == "":
		return nil // the request is for the bucket
	case x.op.KeyAt < len(x.d.base)+1:
		return &resign.RequestError{What: "the key is behind an encoded slash, or in the url of the upstream, and aws.shards spreads keys over prefixes"}
	}
	kept, at := s.Key(x.op.Key), x.op.KeyAt-len(x.d.base)
	x.path = x.path[:at] + prefixOf(kept) + x.path[at:]
	x.op.Key = kept
	if from := r.Header.Get(copySource); from != "" {
		spread, ok := spreadSource(s.Key, from)
		if !ok {
			return &resign.RequestError{What: copySource + " is not BUCKET/KEY, and aws.shards spreads keys over prefixes"}
		}
		r.Header.Set(copySource, spread)
	}
	return nil
}

// prefixOf returns the prefix that a shard adds to a key. It needs no escaping in a path.
func prefixOf(kept string) string { return kept[:strings.IndexByte(kept, '/')+1] }

// spreadSource returns the source of a copy, URL-encoded /BUCKET/KEY?versionId=ID, with the prefix of its shard.
func spreadSource(keep func(string) string, from string) (spread string, ok bool) {
	path, version, versioned := strings.Cut(from, "?")
	bucket, raw, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	key, err := url.PathUnescape(raw)
	if !found || err != nil || bucket == "" || key == "" || strings.ContainsAny(bucket, "%:") { // a colon means an ARN
		return "", false
	}
	if spread = bucket + "/" + prefixOf(keep(key)) + raw; versioned {
		spread += "?" + version
	}
	return spread, true
}
