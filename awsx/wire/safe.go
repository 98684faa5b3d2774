package wire

import (
	"bytes"
	"strings"
)

// readers are prefixes of the names of operations that change nothing.
var readers = []string{
	"Describe", "Get", "List", "Head", "BatchGet", "Query", "Scan", "Search", "Select", "Lookup", "Simulate", "Validate",
	"Estimate", "Count", "Check", "Test", "Filter", "Preview", "TransactGet", "PartiQLSelect", "Verify",
}

// reads reports whether an operation changes nothing. A few names that begin with such a prefix mislead: the operation returns
// something only once, or counts.
func reads(name string) bool {
	switch name {
	case "GetSessionToken", "GetFederationToken", "GetDataKey":
		return true // the result of a repeated call is as good
	case "TestInvokeMethod", "TestInvokeAuthorizer":
		return false
	}
	for _, p := range readers {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// repeatable operations change something, but not more when they are repeated.
//
//   - PutItem and DeleteItem write the same again. If they have a condition, the second may fail. The SDKs also repeat them.
//     UpdateItem may count.
//   - Model calls have no effect except their cost.
//   - Deleting messages twice deletes them. Tags, policies and settings stay the same.
//   - A poll gets the next message or task. One whose response was lost times out, and is sent again.
var repeatable = map[string]bool{
	"dynamodb.PutItem": true, "dynamodb.DeleteItem": true, "dynamodb.BatchWriteItem": true,
	"bedrock.Converse": true, "bedrock.ConverseStream": true, "bedrock.InvokeModel": true,
	"bedrock.InvokeModelWithResponseStream": true, "bedrock.ApplyGuardrail": true,
	"sqs.DeleteMessage": true, "sqs.DeleteMessageBatch": true, "sqs.ChangeMessageVisibility": true, "sqs.ReceiveMessage": true,
	"swf.PollForActivityTask": true, "swf.PollForDecisionTask": true,
	"sts.AssumeRole": true, "sts.AssumeRoleWithWebIdentity": true, "sts.AssumeRoleWithSAML": true,
	"kms.Decrypt": true, "kms.Encrypt": true, "kms.GenerateDataKey": true, "kms.Sign": true,
	"monitoring.PutMetricAlarm": true, "drs.TerminateRecoveryInstances": true,
}

// tokens are the names of idempotency tokens in requests.
var tokens = [][]byte{
	[]byte(`"ClientRequestToken"`), []byte(`"clientRequestToken"`), []byte(`"ClientToken"`), []byte(`"clientToken"`),
	[]byte("ClientToken="), []byte("ClientRequestToken="), []byte(`"IdempotencyToken"`), []byte(`"idempotencyToken"`),
}

// safe reports whether an operation may be repeated although it may have been done.
func safe(service, name string, r Request) bool {
	if reads(name) || repeatable[service+"."+name] {
		return true
	}
	for _, t := range tokens {
		if hasValue(r.Form, t) {
			return true
		}
		if t[0] != '"' && hasValue([]byte(r.Query), t) {
			return true
		}
	}
	return get(r.Header, "X-Amz-Client-Token") != "" || get(r.Header, "X-Amzn-Client-Token") != ""
}

// hasValue reports whether a body contains a token with a value. Null and an empty text do not count.
func hasValue(body, token []byte) bool {
	for {
		_, after, found := bytes.Cut(body, token)
		if !found {
			return false
		}
		if body = after; token[0] != '"' { // of a form
			if len(after) > 0 && after[0] != '&' {
				return true
			}
			continue
		}
		value, ok := bytes.CutPrefix(bytes.TrimLeft(after, " \t\r\n"), []byte(":"))
		if value = bytes.TrimLeft(value, " \t\r\n"); ok && len(value) > 1 && value[0] == '"' && value[1] != '"' {
			return true
		}
	}
}
