/** What draws charts, or undefined without echarts, a development dependency. */
export async function importCharts<T>(load: () => Promise<T>): Promise<T | undefined> {
  try {
    await import("echarts");
  } catch {
    return undefined;
  }
  return await load();
}
