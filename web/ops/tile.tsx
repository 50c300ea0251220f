export function Tile({ label, value, more }: { label: string; value: string; more?: string }) {
  return (
    <div className="tile">
      <dt>{label}</dt>
      <dd>
        {value} {more !== undefined && <span className="soft">{more}</span>}
      </dd>
    </div>
  );
}
