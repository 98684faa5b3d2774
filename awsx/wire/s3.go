package wire

import (
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/paths"
)

// recognizeS3 determines an operation of S3 by the method, by whether there is a bucket or a key, and by parameters that select a
// subresource.
func recognizeS3(o *Op, r Request) {
	o.Bucket, o.Key, o.KeyAt = place(r)
	switch {
	case o.Bucket == "":
		o.Name = byMethod(r.Method, map[string]string{http.MethodGet: "ListBuckets"})
	case o.Key == "":
		o.Name = bucketOp(r)
		if prefix, ok := param(r.Query, "prefix"); ok { // a list belongs to its prefix
			o.Key = unescape(prefix)
		}
	default:
		o.Name = objectOp(r)
	}
	o.Write = r.Method != http.MethodGet && r.Method != http.MethodHead
	o.Safe = r.Method != http.MethodPost || safePosts[o.Name]
}

// safePosts change nothing, or have the same effect when repeated. A repeated CompleteMultipartUpload gets the same response for
// a while.
var safePosts = map[string]bool{
	"SelectObjectContent": true, "DeleteObjects": true, "CompleteMultipartUpload": true, "RestoreObject": true,
}

// place returns the bucket and the key of a request, and the index of the key in the path. The bucket is in the host or first in
// the path.
func place(r Request) (bucket, key string, at int) {
	path := strings.TrimPrefix(r.Path, "/")
	host, _, _ := strings.Cut(r.Host, ":")
	for _, mark := range []string{".s3.", ".s3-"} {
		if i := strings.Index(host, mark); i > 0 {
			return host[:i], decoded(path), begin(r.Path, path)
		}
	}
	bucket, key, _ = strings.Cut(strings.TrimLeft(path, "/"), "/")
	at = begin(r.Path, key)
	if bucket, key = decoded(bucket), decoded(key); strings.Contains(bucket, "/") { // the slash was written as %2F
		var more string
		bucket, more, _ = strings.Cut(strings.TrimLeft(bucket, "/"), "/")
		key, at = strings.TrimSuffix(more+"/"+key, "/"), 0
	}
	return bucket, key, at
}

// begin returns the index at which end begins in path, 0 if end is empty.
func begin(path, end string) int {
	if end == "" {
		return 0
	}
	return len(path) - len(end)
}

// Doubtful reports whether a store could attribute the path of an S3 request to another bucket: some stores resolve dot segments,
// which are part of the key in S3.
func (o *Op) Doubtful(rawPath string) bool {
	if o.Protocol != S3 || !paths.Dotted(rawPath) {
		return false
	}
	written, _, _ := strings.Cut(strings.TrimLeft(rawPath, "/"), "/")
	read, _, _ := strings.Cut(strings.TrimPrefix(paths.Widest(rawPath), "/"), "/")
	return decoded(written) == o.Bucket && read != o.Bucket // otherwise the bucket is in the host
}

func byMethod(method string, names map[string]string) string { return names[method] }

// A sub is a parameter that changes the operation of a request, with the operation for each method.
type sub struct {
	param string
	names map[string]string
}

// bucketSubs and objectSubs are from the API reference of Amazon S3 (November 2026).
var bucketSubs = []sub{
	{"uploads", verbs("ListMultipartUploads", "", "", "")},
	{"versions", verbs("ListObjectVersions", "", "", "")},
	{"delete", verbs("", "", "DeleteObjects", "")},
	{"session", verbs("CreateSession", "", "", "")},
	{"location", verbs("GetBucketLocation", "", "", "")},
	{"acl", verbs("GetBucketAcl", "PutBucketAcl", "", "")},
	{"policy", verbs("GetBucketPolicy", "PutBucketPolicy", "", "DeleteBucketPolicy")},
	{"policyStatus", verbs("GetBucketPolicyStatus", "", "", "")},
	{"tagging", verbs("GetBucketTagging", "PutBucketTagging", "", "DeleteBucketTagging")},
	{"versioning", verbs("GetBucketVersioning", "PutBucketVersioning", "", "")},
	{"lifecycle", verbs("GetBucketLifecycleConfiguration", "PutBucketLifecycleConfiguration", "", "DeleteBucketLifecycle")},
	{"cors", verbs("GetBucketCors", "PutBucketCors", "", "DeleteBucketCors")},
	{"encryption", verbs("GetBucketEncryption", "PutBucketEncryption", "", "DeleteBucketEncryption")},
	{"notification", verbs("GetBucketNotificationConfiguration", "PutBucketNotificationConfiguration", "", "")},
	{"website", verbs("GetBucketWebsite", "PutBucketWebsite", "", "DeleteBucketWebsite")},
	{"replication", verbs("GetBucketReplication", "PutBucketReplication", "", "DeleteBucketReplication")},
	{"logging", verbs("GetBucketLogging", "PutBucketLogging", "", "")},
	{"publicAccessBlock", verbs("GetPublicAccessBlock", "PutPublicAccessBlock", "", "DeletePublicAccessBlock")},
	{"object-lock", verbs("GetObjectLockConfiguration", "PutObjectLockConfiguration", "", "")},
	{"ownershipControls", verbs("GetBucketOwnershipControls", "PutBucketOwnershipControls", "", "DeleteBucketOwnershipControls")},
	{"accelerate", verbs("GetBucketAccelerateConfiguration", "PutBucketAccelerateConfiguration", "", "")},
	{"requestPayment", verbs("GetBucketRequestPayment", "PutBucketRequestPayment", "", "")},
}

var objectSubs = []sub{
	{"uploads", verbs("", "", "CreateMultipartUpload", "")},
	{"uploadId", verbs("ListParts", "UploadPart", "CompleteMultipartUpload", "AbortMultipartUpload")},
	{"tagging", verbs("GetObjectTagging", "PutObjectTagging", "", "DeleteObjectTagging")},
	{"acl", verbs("GetObjectAcl", "PutObjectAcl", "", "")},
	{"attributes", verbs("GetObjectAttributes", "", "", "")},
	{"retention", verbs("GetObjectRetention", "PutObjectRetention", "", "")},
	{"legal-hold", verbs("GetObjectLegalHold", "PutObjectLegalHold", "", "")},
	{"torrent", verbs("GetObjectTorrent", "", "", "")},
	{"restore", verbs("", "", "RestoreObject", "")},
	{"select", verbs("", "", "SelectObjectContent", "")},
	{"renameObject", verbs("", "RenameObject", "", "")},
}

func verbs(get, put, post, del string) map[string]string {
	return map[string]string{http.MethodGet: get, http.MethodPut: put, http.MethodPost: post, http.MethodDelete: del}
}

func subOp(all []sub, r Request) string {
	if r.Query == "" {
		return ""
	}
	for i := range all {
		if _, ok := param(r.Query, all[i].param); ok {
			if name := all[i].names[r.Method]; name != "" {
				return name
			}
		}
	}
	return ""
}

func bucketOp(r Request) string {
	if name := subOp(bucketSubs, r); name != "" {
		return name
	}
	switch r.Method {
	case http.MethodGet:
		if v, _ := param(r.Query, "list-type"); v == "2" {
			return "ListObjectsV2"
		}
		return "ListObjects"
	case http.MethodHead:
		return "HeadBucket"
	case http.MethodPut:
		return "CreateBucket"
	case http.MethodDelete:
		return "DeleteBucket"
	case http.MethodPost:
		return "PostObject"
	}
	return ""
}

func objectOp(r Request) string {
	name := subOp(objectSubs, r)
	copied := get(r.Header, "X-Amz-Copy-Source") != ""
	switch {
	case name == "UploadPart" && copied:
		return "UploadPartCopy"
	case name != "":
		return name
	}
	switch r.Method {
	case http.MethodGet:
		return "GetObject"
	case http.MethodHead:
		return "HeadObject"
	case http.MethodPut:
		if copied {
			return "CopyObject"
		}
		return "PutObject"
	case http.MethodDelete:
		return "DeleteObject"
	}
	return ""
}

// Prefix returns the part of a key by which S3 probably limits requests: its first segments, at most depth, without the last,
// which is the object's name. Its length is bounded.
func Prefix(key string, depth int) string {
	const longest = 256
	end := 0
	for range depth {
		i := strings.IndexByte(key[end:], '/')
		if i < 0 || end+i+1 > longest {
			break
		}
		end += i + 1
	}
	return key[:end]
}
