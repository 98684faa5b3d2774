package wire

import (
	"net/http"
	"strings"
)

// A Protocol is the protocol of a service. It determines the form of errors.
type Protocol uint8

const (
	RestJSON Protocol = iota // a path for each resource, JSON
	JSON10                   // X-Amz-Target, application/x-amz-json-1.0
	JSON11                   // X-Amz-Target, application/x-amz-json-1.1
	Query                    // Action=, XML
	EC2                      // Action=, a different XML
	S3                       // a path for each object, XML
	RestXML                  // a path for each resource, XML
	CBOR                     // Smithy RPC v2
)

// byForm are services that use forms or XML, by their names in signatures.
var byForm = map[string]Protocol{
	"ec2": EC2, "sts": Query, "sns": Query, "iam": Query, "cloudformation": Query, "autoscaling": Query, "rds": Query,
	"elasticloadbalancing": Query, "redshift": Query, "elasticache": Query, "ses": Query, "email": Query, "elasticbeanstalk": Query,
	"s3": S3, "s3express": S3, "s3-outposts": S3, "route53": RestXML, "cloudfront": RestXML,
}

// asksEither are services whose older clients use forms.
var asksEither = map[string]bool{"": true, "sqs": true, "monitoring": true}

func protocolOf(service string, h http.Header, target string) Protocol {
	content := get(h, "Content-Type")
	switch {
	case get(h, "Smithy-Protocol") == "rpc-v2-cbor" && !deaf(service):
		return CBOR
	case target != "" && strings.HasSuffix(content, "1.0"):
		return JSON10
	case target != "":
		return JSON11
	}
	if p, ok := byForm[service]; ok {
		return p
	}
	if asksEither[service] && isForm(h) {
		return Query
	}
	return RestJSON
}

// byPath are services without known routes that only use paths.
var byPath = map[string]bool{"drs": true, "mgn": true}

// deaf reports whether a service ignores the header fields by which other services determine the operation.
func deaf(service string) bool {
	_, form := byForm[service]
	return form || byPath[service] || routes[service] != nil
}

// ByForm reports whether the beginning of a request's body may be needed to determine its operation: the service parses it as a
// form, with any Content-Type.
func (o *Op) ByForm() bool { return o.Protocol == Query || o.Protocol == EC2 }

func isForm(h http.Header) bool {
	media, _, _ := strings.Cut(get(h, "Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded")
}

// targets maps prefixes of X-Amz-Target to services, where the prefix does not begin with the service's name.
var targets = map[string]string{
	"AmazonSQS": "sqs", "TrentService": "kms", "GraniteServiceVersion20100801": "monitoring", "AWSStepFunctions": "states",
	"AmazonSSM": "ssm", "AWSEvents": "events", "AmazonEC2ContainerServiceV20141113": "ecs", "AmazonEC2ContainerRegistry_V20150921": "ecr",
	"CodeBuild_20161006": "codebuild", "AmazonAthena": "athena", "AWSGlue": "glue", "AWSCognitoIdentityProviderService": "cognito-idp",
}

// serviceOf returns the service of a target: DynamoDB_20120810.GetItem is one of dynamodb.
func serviceOf(target string) string {
	prefix, _, _ := strings.Cut(target, ".")
	if s, ok := targets[prefix]; ok {
		return s
	}
	name, _, _ := strings.Cut(prefix, "_")
	return strings.ToLower(name)
}
