package config

import (
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/sidecar/awsdialect"
)

// AWS configures an upstream that is an AWS service. weir signs its requests again, and writes errors in the format
// that the SDKs parse. Credentials come from the SDK's default chain.
type AWS struct {
	Service string // in the signature; "" means the service in the client's signature
	Region  string // "" means the region in the client's signature

	Role       string // ARN of a role to assume; "" means none
	ExternalID string // external ID that the role requires

	RefusePresigned bool
	PrefixDepth     int
	Shards          int
}

var awsFields = []field[AWS]{
	one("service", word, func(a *AWS) *string { return &a.Service }, "from the client's signature", "Service to sign for: `s3`, `dynamodb`, `drs`, `bedrock`."),
	one("region", awsRegion, func(a *AWS) *string { return &a.Region }, "from the client's signature", "Region."),
	one("role", roleARN, func(a *AWS) *string { return &a.Role }, "none", "Role to assume: `arn:aws:iam::123456789012:role/name`."),
	one("external_id", word, func(a *AWS) *string { return &a.ExternalID }, "none", "External ID for the role."),
	one("presigned", choice("pass or refuse", map[string]bool{"pass": false, "refuse": true}), func(a *AWS) *bool { return &a.RefusePresigned }, "pass",
		""),
	one("prefix_depth", count[int](1), func(a *AWS) *int { return &a.PrefixDepth }, "1",
		""),
	one("shards", shards, func(a *AWS) *int { return &a.Shards }, "none",
		"Number of prefixes over which S3 keys are spread, as `awsx.Shards` does. Do not change it for existing keys. See docs/how-to/call-aws.md."),
}

var shards = form[int]{"1 to 65536", func(d *decoder, n *node) (int, bool) {
	v, ok := count[int](1).read(d, n)
	if ok && v > 1<<16 {
		d.Bad(n, "write 16", "%d: is more than 65536", v)
		return 0, false
	}
	return v, ok
}}

// awsRegion reads a string with the form of a region name. Whether the region exists shows when its host name is
// resolved.
var awsRegion = text("a region (eu-west-1)", func(s string) (string, string, string) {
	part := strings.Split(s, "-")
	if len(part) < 3 || len(part[0]) != 2 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || strings.Trim(part[len(part)-1], "0123456789") != "" {
		return "", "is not the name of a region", "write it as eu-west-1"
	}
	return s, "", ""
})

var roleARN = text("the ARN of a role", func(s string) (string, string, string) {
	part := strings.SplitN(s, ":", 6)
	if len(part) != 6 || part[0] != "arn" || part[2] != "iam" || len(part[4]) != 12 || strings.Trim(part[4], "0123456789") != "" ||
		!strings.HasPrefix(part[5], "role/") || len(part[5]) == len("role/") {
		return "", "is not the ARN of a role", "write it as arn:aws:iam::123456789012:role/name"
	}
	return s, "", ""
})

func readAWS(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	var a AWS
	if object(d, n, awsFields, &a); n.Kind != doc.Mapping && n.Kind != doc.Empty {
		return
	}
	if n.Get("external_id") != nil && n.Get("role") == nil {
		d.Bad(n.Get("external_id"), "add role: arn:aws:iam::123456789012:role/name", "no role is configured")
	}
	if n.Get("shards") != nil && a.Service != "" && a.Service != "s3" {
		d.Bad(n.Get("shards"), "remove it", "shards applies to S3 only")
	}
	u.aws = &a
	u.Policy.Undeclared = true
}

// awsScopes are the scopes that every AWS request has.
var awsScopes = []string{awsdialect.Operation, awsdialect.Region, awsdialect.Bucket, awsdialect.Prefix, awsdialect.Access}
