// Package wire knows the protocols and operation names of AWS services, without the SDK. It determines the operation of a
// request, whether the operation may be repeated, and how to write errors that a client of the service understands.
package wire

import (
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/internal/paths"
)

// An Op is the operation of a request.
type Op struct {
	Service  string   // the service in signatures: s3, dynamodb, drs, bedrock, ...
	Name     string   // the SDKs' name: GetObject; "" if unknown
	Protocol Protocol // of its errors

	// Safe means that repeating it does no harm even if it was already done. An operation that only costs twice, such as a model
	// call, is safe.
	Safe bool
	// Write means that it changes something. S3 counts reads and writes separately.
	Write bool
	// Polls means that it waits for data, and is called again when it ends.
	Polls bool

	Bucket string // of S3, "" if there is none
	Key    string // of S3, decoded
	KeyAt  int    // of S3: the index of the key in the raw path; 0 if the key is not in the path, or follows an encoded slash
}

// A Request has the parts of a request that determine its operation.
type Request struct {
	Service string // the service in the signature or the configuration; "" means to derive it from the request
	Method  string
	Host    string // as the client sent it
	Path    string // raw, as in the request line
	Query   string // raw
	Header  http.Header
	Form    []byte // the beginning of a body with Action=, for services that use forms
}

// Recognize returns the operation of a request.
func Recognize(r Request) Op {
	target := get(r.Header, "X-Amz-Target")
	service := r.Service
	if service == "" {
		service = serviceOf(target)
	}
	if deaf(service) {
		target = ""
	}
	o := Op{Service: service, Protocol: protocolOf(service, r.Header, target)}
	if _, acts := param(r.Query, "Action"); acts && o.Protocol == RestJSON && asksEither[service] {
		o.Protocol = Query // also without a form: GET /?Action=ReceiveMessage
	}
	switch {
	case target != "":
		o.Name = target[strings.LastIndexByte(target, '.')+1:]
	case o.Protocol == CBOR:
		o.Name = lastOf(paths.Widest(r.Path), "/operation/")
	case o.Protocol == S3:
		recognizeS3(&o, r)
		return o
	case o.Protocol == Query || o.Protocol == EC2:
		o.Name = action(r)
	default:
		if o.Name = match(service, r.Method, r.Path); o.Name == "" || !plain(o.Name) { // also if the path is written in another way
			o.Name = match(service, r.Method, paths.Widest(r.Path))
		}
	}
	if !plain(o.Name) {
		o.Name = ""
	}
	o.Safe, o.Write, o.Polls = safe(service, o.Name, r), !reads(o.Name), polls[service+"."+o.Name]
	return o
}

// polls are the operations that the SDKs treat as long polls (November 2026).
var polls = map[string]bool{
	"sqs.ReceiveMessage": true, "states.GetActivityTask": true, "swf.PollForActivityTask": true, "swf.PollForDecisionTask": true,
}

// get returns a header field whose name is in canonical form.
func get(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func lastOf(path, after string) string {
	if i := strings.LastIndex(path, after); i >= 0 {
		return path[i+len(after):]
	}
	return ""
}

// plain reports whether a name can be the name of an operation. Other names must not get into metrics.
func plain(name string) bool {
	if len(name) > 100 {
		return false
	}
	for i := range len(name) {
		c := name[i] | 0x20
		if (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return true
}

// action returns the parameter Action of a query or a form.
func action(r Request) string {
	for name := range actions(r) {
		return name
	}
	return ""
}

// actions yields every parameter Action of the query and the form.
func actions(r Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range []string{r.Query, string(r.Form)} {
			for s != "" {
				var pair string
				pair, s, _ = strings.Cut(s, "&")
				if name, value, _ := strings.Cut(pair, "="); named(name, "Action") && !yield(unescape(value)) {
					return
				}
			}
		}
	}
}

// param reports whether a raw query has a parameter, and its value.
func param(query, name string) (value string, ok bool) {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		k, v, _ := strings.Cut(pair, "=")
		if named(k, name) {
			return v, true
		}
	}
	return "", false
}

// named reports whether the raw name of a parameter, decoded, is this one.
func named(raw, name string) bool {
	return raw == name || strings.Contains(raw, "%") && unescape(raw) == name
}

// unescape decodes a raw value of a query.
func unescape(s string) string {
	if d, err := url.QueryUnescape(s); err == nil {
		return d
	}
	return s
}

// decoded decodes a raw path segment.
func decoded(s string) string {
	if d, err := url.PathUnescape(s); err == nil {
		return d
	}
	return s
}

// Named returns an operation whose name is known. token means that the request has a token by which the service recognizes
// repetitions.
func Named(service, name string, token bool) Op {
	o := Op{Service: service, Name: name, Protocol: protocolOf(service, nil, "")}
	o.Write, o.Polls = !reads(name), polls[service+"."+name]
	switch {
	case o.Protocol == S3:
		o.Safe = !unsafeOnS3[name]
	default:
		o.Safe = token || safe(service, name, Request{})
	}
	return o
}

// unsafeOnS3 are operations that create something each time, such as an upload or a job.
var unsafeOnS3 = map[string]bool{"CreateMultipartUpload": true, "CreateJob": true, "PostObject": true, "WriteGetObjectResponse": true}

// ServiceOf returns the name of a service in signatures for its ID in the SDKs: "Bedrock Runtime" becomes bedrock.
func ServiceOf(id string) string {
	if s, ok := signedAs[id]; ok {
		return s
	}
	return strings.ReplaceAll(strings.ToLower(id), " ", "-")
}

var signedAs = map[string]string{
	"S3": "s3", "DynamoDB": "dynamodb", "SQS": "sqs", "SNS": "sns", "STS": "sts", "EC2": "ec2", "Lambda": "lambda", "drs": "drs",
	"Bedrock Runtime": "bedrock", "Bedrock": "bedrock", "CloudWatch": "monitoring", "CloudWatch Logs": "logs", "SFN": "states",
	"EventBridge": "events", "Secrets Manager": "secretsmanager", "SES": "ses", "SESv2": "ses", "Auto Scaling": "autoscaling",
	"CloudFormation": "cloudformation", "Elastic Load Balancing v2": "elasticloadbalancing", "API Gateway": "apigateway", "DynamoDB Streams": "dynamodb",
}
