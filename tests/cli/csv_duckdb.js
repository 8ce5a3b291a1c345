// node csv_duckdb.js FOLDER: DuckDB opens every *.csv below the folder without options, with the file's columns and rows
// and with numbers as numbers. Needs npm's @duckdb/node-api where node finds it (NODE_PATH).
'use strict';
const fs = require('fs'), path = require('path'), { DuckDBInstance } = require('@duckdb/node-api');

const files = folder => fs.readdirSync(folder, { withFileTypes: true }).flatMap(e =>
  e.isDirectory() ? files(path.join(folder, e.name)) : e.name.endsWith('.csv') ? [path.join(folder, e.name)] : []);

(async () => {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const rows = async query => (await connection.runAndReadAll(query)).getRows();
  const list = files(process.argv[2]);
  for (const file of list) {
    const columns = await rows(`describe select * from '${file}'`), count = Number((await rows(`select count(*) from '${file}'`))[0][0]);
    const lines = fs.readFileSync(file, 'utf8').split('\r\n');
    if (columns.map(c => c[0]).join() !== lines[0]) throw new Error(`${file}: columns ${columns.map(c => c[0])}`);
    if (count !== lines.length - 2) throw new Error(`${file}: ${count} rows`);
    const words = path.join(path.dirname(file), 'data_dictionary.csv'), types = new Map(columns);
    if (count === 0 || !fs.existsSync(words)) continue;
    for (const [column, unit] of await rows(`select "column", unit from '${words}' where file = '${path.basename(file)}'`))
      if (unit !== 'text' && !/INT|DOUBLE/.test(types.get(column))) throw new Error(`${file}: ${column} is ${types.get(column)}`);
  }
  if (list.length < 20) throw new Error(`only ${list.length} files`);
  console.log(`${list.length} files in DuckDB ${(await rows('select version()'))[0][0]}`);
})().catch(error => { console.error(String(error)); process.exit(1); });
