// Unmodified clients of the AWS SDK for JavaScript, through weir at the address given.
const crypto = require('node:crypto');
const { Readable } = require('node:stream');
const s3 = require('@aws-sdk/client-s3');
const ddb = require('@aws-sdk/client-dynamodb');
const drs = require('@aws-sdk/client-drs');

const base = process.argv[2];
const common = {
  region: 'eu-west-1',
  credentials: { accessKeyId: 'AKCLIENT', secretAccessKey: 'of the client', sessionToken: 'of the client' },
};

function same(a, b, what) {
  if (Buffer.compare(Buffer.from(a), Buffer.from(b)) !== 0) throw new Error(`${what}: ${a.length} bytes, want ${b.length}`);
}

async function objects() {
  const c = new s3.S3Client({ ...common, endpoint: base + '/s3', forcePathStyle: true });
  const Bucket = 'weir-js';
  await c.send(new s3.CreateBucketCommand({ Bucket }));
  for (const size of [1024, 8 << 20]) {
    const body = crypto.randomBytes(size);
    for (const Key of [`plain-${size}`, `ü b+c/${size}:x`]) {
      await c.send(new s3.PutObjectCommand({ Bucket, Key, Body: body }));
      const got = await c.send(new s3.GetObjectCommand({ Bucket, Key }));
      same(await got.Body.transformToByteArray(), body, Key);
    }
    const Key = `stream-${size}`;
    await c.send(new s3.PutObjectCommand({ Bucket, Key, Body: Readable.from([body]), ContentLength: size }));
    same(await (await c.send(new s3.GetObjectCommand({ Bucket, Key }))).Body.transformToByteArray(), body, Key);
  }
  const part = crypto.randomBytes(8 << 20);
  const Key = 'parts';
  const { UploadId } = await c.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
  const Parts = [];
  for (const PartNumber of [1, 2]) {
    const { ETag } = await c.send(new s3.UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body: part }));
    Parts.push({ ETag, PartNumber });
  }
  await c.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
  const list = await c.send(new s3.ListObjectsV2Command({ Bucket }));
  if (list.KeyCount !== 7) throw new Error(`${list.KeyCount} keys, want 7`);
  await c.send(new s3.DeleteObjectCommand({ Bucket, Key }));
  try {
    await c.send(new s3.GetObjectCommand({ Bucket, Key: 'not there' }));
    throw new Error('no error');
  } catch (e) {
    if (e.name !== 'NoSuchKey') throw e;
  }
}

async function tables() {
  const c = new ddb.DynamoDBClient({ ...common, endpoint: base + '/dynamodb' });
  await c.send(new ddb.CreateTableCommand({
    TableName: 'weir-js', BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [{ AttributeName: 'k', AttributeType: 'S' }], KeySchema: [{ AttributeName: 'k', KeyType: 'HASH' }],
  }));
  await ddb.waitUntilTableExists({ client: c, maxWaitTime: 20, minDelay: 0.05, maxDelay: 0.2 }, { TableName: 'weir-js' });
  await c.send(new ddb.PutItemCommand({ TableName: 'weir-js', Item: { k: { S: 'ü' } } }));
  const { Item } = await c.send(new ddb.GetItemCommand({ TableName: 'weir-js', Key: { k: { S: 'ü' } } }));
  if (Item.k.S !== 'ü') throw new Error(JSON.stringify(Item));
}

async function recoveries() {
  const c = new drs.DrsClient({ ...common, endpoint: base + '/drs' });
  const { items } = await c.send(new drs.DescribeSourceServersCommand({}));
  if (items.length !== 5) throw new Error(`${items.length} servers`);
  await c.send(new drs.StartRecoveryCommand({ sourceServers: [{ sourceServerID: items[0].sourceServerID }] }));
  // The server breaks the connection behind the second: weir does not start it again, and
  // keeps the SDK from doing so.
  try {
    await c.send(new drs.StartRecoveryCommand({ sourceServers: [{ sourceServerID: items[1].sourceServerID }] }));
    throw new Error('no error');
  } catch (e) {
    if (e.name !== 'WeirGaveUpException') throw e;
  }
}

(async () => {
  for (const f of [objects, tables, recoveries]) {
    await f();
    console.log(`${f.name}: good`);
  }
})().catch((e) => { console.error(e); process.exit(1); });
