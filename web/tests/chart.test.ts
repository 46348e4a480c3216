import { describe, expect, it } from 'vitest';
import { columnsInSight, textWidth } from '../src/chart/columns';
import { along, largest, strength } from '../src/chart/scale';
import { inLanguage, type ChartPage } from '../src/chart/wire';

describe('the scale of a grid', () => {
  it('ends at the number of the largest size, or where it is told to', () => {
    expect(largest({ values: [[1, -3, null]], most: null })).toBe(3);
    expect(largest({ values: [[1, -3]], most: 2 })).toBe(2);
  });
  it('leaves zero and nothing without colour, and ends at one', () => {
    expect([0, null, -3, 1].map((value) => strength(value, 2))).toEqual([0, 0, 1, 0.5]);
    expect(strength(0, 0)).toBe(0);
  });
});

describe('bars', () => {
  it('begin at zero, to either side', () => {
    const place = along([-1, 3, null]);
    expect(place(-1)).toEqual({ left: 0, width: 0.25 });
    expect(place(3)).toEqual({ left: 0.25, width: 0.75 });
  });
  it('keep zero in sight when all numbers are on one side', () => {
    expect(along([2, 4])(2)).toEqual({ left: 0, width: 0.5 });
    expect(along([0])(0)).toEqual({ left: 0, width: 0 });
  });
});

describe('languages', () => {
  const panel = { kind: 'bars', title: 'a', names: ['x'] };
  const page = {
    chart: { title: 't', caption: 'c', panels: [panel] },
    others: { zh: { title: '题', caption: '说明', panels: [{ title: '甲' }] } },
  } as unknown as ChartPage;
  it('share what is the same', () => {
    expect(inLanguage(page, 'zh').panels[0]).toEqual({ ...panel, title: '甲' });
    expect(inLanguage(page, 'en')).toBe(page.chart);
  });
});

describe('columns', () => {
  it('are as wide as their texts, within limits', () => {
    expect(textWidth(['a'])).toBe(30);
    expect(textWidth(['abcde', 'a'])).toBe(48);
    expect(textWidth(['猫猫'])).toBe(textWidth(['abcd']));
    expect(textWidth(['x'.repeat(99)])).toBe(104);
  });
  it('are drawn where they are in sight, and a few beside', () => {
    expect(columnsInSight(0, 500, 50, 200)).toEqual({ from: 0, to: 14 });
    expect(columnsInSight(5000, 500, 50, 200)).toEqual({ from: 96, to: 114 });
    expect(columnsInSight(9999, 500, 50, 200)).toEqual({ from: 195, to: 200 });
    expect(columnsInSight(0, 0, 50, 1)).toEqual({ from: 0, to: 1 });
  });
});
